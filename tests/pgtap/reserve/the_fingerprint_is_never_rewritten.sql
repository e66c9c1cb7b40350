-- I5
begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create function pg_temp.identity() returns text language sql as
$$select concat_ws(' ', scope, key, fingerprint, fields) from idem_private.reservation$$;

select idem.reserve(
    'shop', 'k', '\x01', 'leased', fields => '{"/amount": "h1"}', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa',
    policy => 'again'
);
create temp table first as select pg_temp.identity();

select idem.reserve('shop', 'k', '\x01', 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select is(pg_temp.identity(), (table first), 'not by a repeated reserve');

set local idem.clock_offset = '1 hour';
select idem.reserve(
    'shop', 'k', '\x01', 'leased', fields => '{"/amount": "h2"}', token => 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb'
);
select is(pg_temp.identity(), (table first), 'not by a takeover');

select idem.release('shop', 'k', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb');
select is(pg_temp.identity(), (table first), 'not by a release');

select idem.reserve('shop', 'k', '\x02', token => 'cccccccc-cccc-4ccc-8ccc-cccccccccccc');
select is(pg_temp.identity(), (table first), 'not by a mismatch');

select idem.reserve('shop', 'k', '\x01', token => 'cccccccc-cccc-4ccc-8ccc-cccccccccccc');
select idem.complete('shop', 'k', 'cccccccc-cccc-4ccc-8ccc-cccccccccccc', 201);
select is(pg_temp.identity(), (table first), 'not by a completion');

select * from finish();
rollback;

-- I5
begin;
select plan(3);

set local idem.single_transaction = on;

select idem.reserve('shop', 'k', '\x01', 'leased', fields => '{"/a": "b"}', state => '1', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as table idem_private.reservation;
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.resolve('shop', 'k', 'retry', 'asked');

select results_eq(
    'select fingerprint, fields, policy, created_at, expires_at, attempt, state from idem_private.reservation',
    'select fingerprint, fields, policy, created_at, expires_at, attempt, state from before'
);
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'mismatch', 'another request cannot have it');
select is((idem.lookup('shop', 'k')).outcome, 'released');

select * from finish();
rollback;

begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, lease) values ('slow', '10 minutes');
select idem.reserve('shop', 'default', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve(
    'shop', 'policy', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'slow'
);
create function pg_temp.left_of(lease_until timestamptz) returns interval language sql as
$$select date_trunc('second', lease_until - clock_timestamp() + interval '500 milliseconds')$$;

set local idem.clock_offset = '50 seconds';
select is(
    pg_temp.left_of(idem.extend('shop', 'default', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')), interval '110 seconds',
    'by the lease of the policy'
);
select is(
    pg_temp.left_of(idem.extend('shop', 'policy', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa')), interval '650 seconds',
    'be it long'
);
select is(
    pg_temp.left_of(idem.extend('shop', 'default', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', '1 hour')),
    interval '3650 seconds', 'or by the given one'
);
set local idem.clock_offset = '3600 seconds';
select is((idem.reserve('shop', 'default')).outcome, 'in_progress', 'which others respect');

select * from finish();
rollback;

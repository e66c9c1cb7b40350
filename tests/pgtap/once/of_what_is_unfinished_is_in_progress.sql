-- Whether the policy is that of the call or another: a message whose outcome is unknown is not to be acknowledged.
begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, ttl, tombstone) values ('again', 'retry', '14 days', '1 day');
create temp table policies (policy) as values ('messages'), ('default'), ('again');
select idem.reserve('billing', policy || ' atomic', policy => policy) from policies;
select idem.reserve('billing', policy || ' live', mode => 'leased', lease => '1 hour', policy => policy) from policies;
select idem.reserve('billing', policy || ' lapsed', mode => 'leased', policy => policy) from policies;
select idem.defer('billing', policy || ' deferred', token)
from policies cross join lateral idem.reserve(
    'billing', policy || ' deferred', mode => 'leased', lease => '1 hour', policy => policy
);
select idem.checkpoint('billing', policy || ' released', token, 'half')
from policies cross join lateral idem.reserve(
    'billing', policy || ' released', mode => 'leased', policy => policy, token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
select idem.release('billing', policy || ' released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa') from policies;

set local idem.clock_offset = '2 minutes';
create temp table before as table idem_private.reservation;
select set_eq(
    $$select b.key, idem.once('billing', b.key, p.policy) from before as b cross join policies as p$$,
    $$select key, 'in_progress' from before$$, 'soon'
);
set local idem.clock_offset = '60 days';
select set_eq(
    $$select b.key, idem.once('billing', b.key, p.policy) from before as b cross join policies as p$$,
    $$select key, 'in_progress' from before$$, 'and late'
);
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');
select is((select count(*) from before), 15::bigint, 'in every state');

select * from finish();
rollback;

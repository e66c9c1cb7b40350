begin;
select plan(3);

insert into idem.policies (name, tombstone) values ('kept', '2 hours');
create temp table policies (policy) as values ('messages'), ('default'), ('kept');
select idem.complete('billing', policy, token, 500, null, 'x')
from policies cross join lateral idem.reserve('billing', policy, '\x01', policy => policy);
create temp table before as table idem_private.reservation;

select set_eq(
    'select idem.once(b.scope, b.key, p.policy) from before as b cross join policies as p', array['duplicate'],
    'whatever its answer, fingerprint and policy'
);
set local idem.clock_offset = '25 hours 59 minutes';
select is(idem.once('billing', 'kept'), 'duplicate', 'inside the tombstone of its policy, too');
select set_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;

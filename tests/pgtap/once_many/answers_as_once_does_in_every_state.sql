begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, ttl, tombstone) values ('again', 'retry', '14 days', '40 days');
create temp table policies (policy, expired) as
values ('messages', 'first'), ('default', 'first'), ('again', 'duplicate');
select idem.reserve('billing', policy || ' atomic', policy => policy) from policies;
select idem.reserve('billing', policy || ' live', mode => 'leased', lease => '1 hour', policy => policy) from policies;
select idem.reserve('billing', policy || ' lapsed', mode => 'leased', policy => policy) from policies;
select idem.checkpoint('billing', policy || ' released', token, 'half')
from policies cross join lateral idem.reserve(
    'billing', policy || ' released', mode => 'leased', policy => policy, token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
);
select idem.release('billing', policy || ' released', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa') from policies;
select idem.complete('billing', policy || ' completed', token, 201, null, 'x')
from policies cross join lateral idem.reserve('billing', policy || ' completed', '\x01', policy => policy);
select idem.once('billing', policy || ' marked', policy) from policies;
create temp table before as table idem_private.reservation;

set local idem.clock_offset = '2 minutes';
select set_eq(
    $$select o.key, o.outcome
      from idem.once_many('billing', (select array_agg(key) || 'new'::text from before)) as o$$,
    $$select key, case when completed_at is null then 'in_progress' else 'duplicate' end from before
      union all values ('new', 'first')$$,
    'soon'
);
select idem.once_undo('billing', array['new']);
select set_eq('table idem_private.reservation', 'table before', 'nothing that was there has changed');
set local idem.clock_offset = '50 days';
select set_eq(
    $$select o.key, o.outcome from idem.once_many('billing', (select array_agg(key) from before)) as o$$,
    $$select b.key, case when b.completed_at is null then 'in_progress' else p.expired end
      from before as b inner join policies as p on b.policy = p.policy$$,
    'and late'
);
select set_eq(
    $$select key, policy, status, body, expires_at - created_at from idem_private.reservation
      where policy = 'messages' and completed_at is not null$$,
    $$select b.key, 'messages', null::int, null::bytea, interval '336 hours'
      from before as b where b.completed_at is not null and b.policy in ('messages', 'default')$$,
    'what was expired begins a new life'
);
select is((select count(*) from before), 18::bigint, 'in every state');

select * from finish();
rollback;

begin;
select plan(9);

insert into idem.policies (name, ttl, tombstone, min_retention) values
    ('kept', '24 hours', '2 hours', '1 hour'), ('late', '24 hours', '0', '48 hours');
select idem.once('billing', 'kept', 'kept');
select idem.once('billing', 'late', 'late');
select idem.once('billing', 'changed', 'default');
select idem.complete('billing', 'answered', token, 201, '[["a", "b"]]', 'x')
from idem.reserve('billing', 'answered', '\x01');

set local idem.clock_offset = '23 hours 59 minutes';
select is(idem.once('billing', 'changed', 'default'), 'duplicate', 'not before its expiry');
set local idem.clock_offset = '26 hours';
select is(idem.once('billing', 'kept', 'kept'), 'first', 'after the tombstone');
select is(idem.once('billing', 'kept', 'kept'), 'duplicate', 'once');
select is(idem.once('billing', 'late', 'late'), 'duplicate', 'min_retention counts');
select is(idem.once('billing', 'changed'), 'first', 'under another policy');
select is(idem.once('billing', 'answered'), 'first', 'also where there was an answer');
select results_eq(
    $$select outcome, attempt, status, headers, body, expires_at - created_at, completed_at - created_at
      from idem.reserve('billing', 'answered', null)$$,
    $$values (
        'replay', 1, null::int, null::jsonb, null::bytea, interval '336 hours', interval '0'
    )$$,
    'of which nothing is left'
);
set local idem.clock_offset = '49 hours';
select is(idem.once('billing', 'late', 'late'), 'first', 'and then it is over');
select is(idem.once('billing', 'changed'), 'duplicate', 'each life has the policy of its own call');

select * from finish();
rollback;

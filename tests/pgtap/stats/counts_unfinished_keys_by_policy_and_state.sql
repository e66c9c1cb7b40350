begin;
select plan(3);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create temp table given as
select k.name, (idem.reserve('shop', k.name, mode => 'leased', lease => k.lease, policy => k.policy)).token
from (values
    ('a', interval '1 hour', 'default'), ('b', '1 second', 'default'), ('c', '1 second', 'default'),
    ('d', '1 second', 'again'), ('e', '1 hour', 'again'), ('f', '1 hour', 'default')
) as k (name, lease, policy);
select idem.complete('shop', 'f', token, 201) from given where name = 'f';
select idem.checkpoint('shop', 'e', token, 'half') from given where name = 'e';
select idem.release('shop', 'e', token) from given where name = 'e';
set local idem.clock_offset = '1 minute';

select results_eq(
    'select policy, state, keys, estimated from idem.stats() where not estimated',
    $$values
        ('again', 'lapsed', bigint '1', false), ('again', 'released', 1, false), ('default', 'in_progress', 1, false),
        ('default', 'lapsed', 2, false)$$
);
select is(
    (select oldest from idem.stats() where policy = 'default' and state = 'lapsed'),
    (select min(created_at) from idem.keys where policy = 'default' and outcome = 'lapsed')
);
select ok((select bool_and(bytes > 0) from idem.stats() where not estimated), 'each takes room');

select * from finish();
rollback;

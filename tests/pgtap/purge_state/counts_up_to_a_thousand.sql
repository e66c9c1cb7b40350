begin;
select plan(2);

insert into idem.policies (name, ttl, max_batch) values ('short', '1 hour', 2000);
select count(*) from idem.once_many('shop', array(select 'm' || n from generate_series(1, 1200) as n), 'short');
set local idem.clock_offset = '2 hours';
select is((select due from idem.purge_state()), bigint '1000', 'and no further, however much there is');
select is(
    (select due_since from idem.purge_state()), (select min(expires_at) from idem.keys), 'beginning with the oldest'
);

select * from finish();
rollback;

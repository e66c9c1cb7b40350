begin;
select plan(4);

insert into idem.policies (name, max_batch) values ('few', 1000), ('many', 1000);
select count(*) from idem.once_many('shop', array(select 'm' || n from generate_series(1, 900) as n), 'many');
select count(*) from idem.once_many('shop', array(select 'f' || n from generate_series(1, 100) as n), 'few');
set local idem.single_transaction = on;
select count(*) from generate_series(1, 20) as n, idem.reserve('shop', 'open' || n, mode => 'leased', policy => 'few');
analyze idem_private.reservation;

select results_eq(
    'select policy, state, keys, estimated from idem.stats() where policy = ''many''',
    $$values ('many', 'finished', bigint '900', true)$$
);
select ok(
    (select keys between 95 and 105 from idem.stats() where policy = 'few' and estimated), 'without the unfinished ones'
);
select ok(
    (
        select sum(bytes) between 0.8 * pg_total_relation_size('idem_private.reservation')
            and 1.2 * pg_total_relation_size('idem_private.reservation')
        from idem.stats()
    ),
    'the sizes are shares of the table'
);
select is((select count(*) from idem.stats() where estimated and oldest is not null), bigint '0');

select * from finish();
rollback;

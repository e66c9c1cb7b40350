begin;
select plan(8);

\ir ../refusal.psql
create function pg_temp.keys(n int) returns text[] language sql as
$$select array_agg('m' || i order by i) from generate_series(1, n) as i$$;

select is(pg_temp.refusal($$select idem.once_many('billing', pg_temp.keys(201))$$), 'IK007 batch_too_large 200');
select is(
    pg_temp.refusal($$select idem.once_many('billing', array_fill('m1'::text, array[201]))$$),
    'IK007 batch_too_large 200', 'repeats count'
);
select is_empty('table idem_private.reservation', 'nothing is stored');
select is(
    (select count(*) from idem.once_many('billing', pg_temp.keys(200)) where outcome = 'first'), 200::bigint,
    'by default 200 keys'
);
update idem.policies set max_batch = 2 where name = 'messages';
select is(
    pg_temp.refusal($$select idem.once_many('billing', '{a,b,c}')$$), 'IK007 batch_too_large 2', 'a change counts'
);
select is((select count(*) from idem.once_many('billing', '{a,b}')), 2::bigint);
insert into idem.policies (name, max_batch) values ('bulk', 1000);
select is(
    (select count(*) from idem.once_many('bulk', pg_temp.keys(1000), 'bulk') where outcome = 'first'), 1000::bigint,
    'also a large one'
);
select is(
    pg_temp.refusal($$select idem.once_many('bulk', pg_temp.keys(1001), 'bulk')$$), 'IK007 batch_too_large 1000'
);

select * from finish();
rollback;

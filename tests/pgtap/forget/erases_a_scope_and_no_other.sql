begin;
select plan(3);

insert into idem.policies (name, tombstone) values ('buried', '10 days');
select idem.complete('client:4', k, token, 200) from (values ('a'), ('b')) as v (k), idem.reserve('client:4', k);
select idem.complete('client:4', 'buried', token, 200) from idem.reserve('client:4', 'buried', policy => 'buried');
select idem.complete('client:42', 'a', token, 200) from idem.reserve('client:42', 'a');
select idem.once('CLIENT:4', 'a');
update idem_private.reservation set expires_at = clock_timestamp() where key = 'buried';
update idem.policies set min_retention = '1 microsecond' where name = 'buried';
select idem.purge();

select is(idem.forget('client:4'), 3::bigint, 'marks, answers and tombstones');
select is((select string_agg(scope, ' ' order by scope) from idem.keys), 'CLIENT:4 client:42');
select is(idem.forget('nobody'), 0::bigint);

select * from finish();
rollback;

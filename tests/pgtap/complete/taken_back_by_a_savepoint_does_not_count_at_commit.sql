begin;
select plan(1);

\ir ../refusal.psql
select idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
savepoint before;
select idem.complete('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
rollback to before;

select is(pg_temp.refusal('set constraints all immediate'), 'IK005 not_completed');

select * from finish();
rollback;

begin;
select plan(2);

\ir ../refusal.psql
-- a caller that draws tokens badly is checked all the same
select idem.reserve('shop', 'forgotten', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.complete('shop', 'k', token)
from idem.reserve('shop', 'k', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select is(pg_temp.refusal('set constraints all immediate'), 'IK005 not_completed');
select is((idem.lookup('shop', 'forgotten')).outcome, 'in_progress');

select * from finish();
rollback;

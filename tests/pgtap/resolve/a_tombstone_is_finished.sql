\ir ../refusal.psql

begin;
select plan(1);

insert into idem.policies (name, tombstone) values ('stone', '7 days');
select idem.complete('shop', 'done', token) from idem.reserve('shop', 'done', policy => 'stone');
set local idem.clock_offset = '25 hours';

select is(pg_temp.refusal($$select idem.resolve('shop', 'done', 'retry', 'asked', force => true)$$), 'IK004 finished');

select * from finish();
rollback;

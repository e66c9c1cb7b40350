-- As a reserve that takes over: IK005 at commit.
begin;
select plan(3);

\ir ../refusal.psql
set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create function pay(args jsonb) returns idem.response language sql as 'select row(201, null, null)::idem.response';
select idem.reserve('shop', 'k', '\x01', 'leased', policy => 'again');

set local idem.clock_offset = '2 minutes';
select is((idem.run_begin('shop', 'k', '\x01', 'pay(jsonb)')).outcome, 'started');
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'in_progress');
select is(pg_temp.refusal('set constraints all immediate'), 'IK005 not_completed');

select * from finish();
rollback;

begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
create temp table first as select * from idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
set local idem.clock_offset = '1 hour';
create temp table second as select * from idem.reserve('shop', 'k', mode => 'leased');

select is((select downstream_key from first), idem.downstream_key('shop', 'k'), 'the first');
select is((select downstream_key from second), idem.downstream_key('shop', 'k'), 'the second');

select * from finish();
rollback;

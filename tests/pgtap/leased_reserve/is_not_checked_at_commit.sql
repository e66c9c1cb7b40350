-- No IK005: its work comes after the commit.
begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');

select lives_ok('set constraints all immediate', 'a new key');
set local idem.clock_offset = '1 hour';
select idem.reserve('shop', 'k', mode => 'leased');
select lives_ok('set constraints all immediate', 'a takeover');

select * from finish();
rollback;

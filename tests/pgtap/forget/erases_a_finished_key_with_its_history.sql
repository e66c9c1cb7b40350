begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', mode => 'leased', policy => 'again');
select idem.complete('shop', 'other', token, 201) from idem.reserve('shop', 'other');
set local idem.clock_offset = '2 minutes';
select idem.complete('shop', 'k', token, 201) from idem.reserve('shop', 'k');

select is(idem.forget('shop', 'k'), 1::bigint, 'long before it expires');
select is((idem.lookup('shop', 'k')).outcome, 'absent');
select is_empty('select * from idem_private.event', 'nothing tells that it was there');
select is((idem.lookup('shop', 'other')).outcome, 'completed', 'other keys stay');
select is(idem.forget('shop', 'k'), 0::bigint, 'once');

select * from finish();
rollback;

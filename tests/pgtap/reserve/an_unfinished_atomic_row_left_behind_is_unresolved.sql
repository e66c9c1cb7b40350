-- Where the check at commit cannot run, such a row may become visible. Its outcome is unknown; the key is not free.
begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'hold', '\x01');
select idem.reserve('shop', 'retry', '\x01', policy => 'again');
update idem_private.reservation set owner_xid = '3';

select is((idem.reserve('shop', 'hold', '\x01')).outcome, 'unresolved', 'under hold');
select is((idem.reserve('shop', 'retry', '\x01')).outcome, 'unresolved', 'under retry');
set local idem.clock_offset = '10 years';
select is((idem.reserve('shop', 'hold', '\x01', 'leased')).outcome, 'unresolved', 'and it never expires');
select is((idem.reserve('shop', 'hold', '\x02')).outcome, 'mismatch', 'to another request it is a mismatch');
select is((idem.lookup('shop', 'hold')).outcome, 'lapsed', 'lookup shows it as lapsed');

select * from finish();
rollback;

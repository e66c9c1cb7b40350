begin;
select plan(4);

select idem.complete('billing', 'm', token, 201, null, 'x') from idem.reserve('billing', 'm', '\x01');
set local idem.clock_offset = '25 hours';
select idem.once('billing', 'm');

select is(idem.once_undo('billing', '{m}'), 1);
select is((idem.lookup('billing', 'm')).outcome, 'absent', 'as it was, since an expired row is as none');
select is(idem.once('billing', 'm'), 'first');
select is(idem.once('billing', 'm'), 'duplicate');

select * from finish();
rollback;

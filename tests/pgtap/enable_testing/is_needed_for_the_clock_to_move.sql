begin;
select plan(3);

select idem.disable_testing();
select idem.complete('shop', 'k', token) from idem.reserve('shop', 'k');

set local idem.clock_offset = '25 hours';
select is((idem.reserve('shop', 'k')).outcome, 'replay', 'without it the setting does nothing');
select idem.enable_testing();
select is((idem.reserve('shop', 'k')).outcome, 'started', 'with it the setting is honoured');
select idem.disable_testing();
select is((idem.lookup('shop', 'k')).outcome, 'in_progress', 'until it is disabled');

select * from finish();
rollback;

begin;
select plan(1);

select idem.disable_testing();
set local idem.clock_offset = 'nonsense';
set local idem.single_transaction = 'nonsense';

select is((idem.reserve('shop', 'k')).outcome, 'started', 'the settings are not even read');

select * from finish();
rollback;

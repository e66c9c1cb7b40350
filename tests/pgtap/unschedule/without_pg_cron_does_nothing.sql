begin;
select plan(1);

select is(idem.unschedule(), 0);

select * from finish();
rollback;

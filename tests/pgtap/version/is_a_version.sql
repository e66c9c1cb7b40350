begin;
select plan(1);

select matches(idem.version(), '^[0-9]+\.[0-9]+\.[0-9]+');

select * from finish();
rollback;

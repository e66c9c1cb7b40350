begin;
select plan(2);

create temp table first as select idem.downstream_key('shop', 'k', 'charge') as key;
set local idem.clock_offset = '10 years';
set local timezone = 'Asia/Kolkata';
set local datestyle = 'German';

select is(idem.downstream_key('shop', 'k', 'charge'), (table first));
select is(idem.downstream_key(scope => 'shop', key => 'k', step => 'charge'), (table first), 'by name');

select * from finish();
rollback;

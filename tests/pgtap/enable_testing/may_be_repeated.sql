begin;
select plan(2);

select lives_ok('select idem.enable_testing()');
select lives_ok('select idem.enable_testing()');

select * from finish();
rollback;

begin;
select plan(2);

select lives_ok('select idem.disable_testing()');
select lives_ok('select idem.disable_testing()');

select * from finish();
rollback;

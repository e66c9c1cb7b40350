begin;
select plan(2);

create role idem_stranger;

select is(has_function_privilege('idem_stranger', 'idem.disable_testing()', 'execute'), false);
select is(has_function_privilege('idem_stranger', 'idem.enable_testing()', 'execute'), false);

select * from finish();
rollback;

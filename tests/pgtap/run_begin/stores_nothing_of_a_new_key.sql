begin;
select plan(3);

select ok(idem.run_begin('shop', 'k'));
select is_empty('table idem_private.reservation');
select lives_ok('set constraints all immediate', 'there is nothing to complete');

select * from finish();
rollback;

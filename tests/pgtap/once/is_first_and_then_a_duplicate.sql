begin;
select plan(4);

select is(idem.once('billing', 'm1'), 'first');
select is(idem.once('billing', 'm1'), 'duplicate');
select is(idem.once('mail', 'm1'), 'first', 'for each consumer');
select lives_ok('set constraints all immediate', 'it commits as it is');

select * from finish();
rollback;

begin;
select plan(3);

select idem.once(scope, 'a') from unnest(array['billing', 'Billing', 'mail']) as scope;

select is(idem.once_undo('billing', '{a,A}'), 1);
select is(idem.once('Billing', 'a'), 'duplicate');
select is(idem.once('mail', 'a'), 'duplicate');

select * from finish();
rollback;

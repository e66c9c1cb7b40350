begin;
select plan(2);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, max_attempts) values ('twice', 'retry', 2);
select idem.reserve('shop', 'k', mode => 'leased', policy => 'twice');
set local idem.clock_offset = '1 hour';
select idem.release('shop', 'k', token) from idem.reserve('shop', 'k', mode => 'leased');

select results_eq(
    $$select outcome, attempt from idem.reserve('shop', 'k', mode => 'leased')$$,
    $$values ('started', 3)$$, 'the third attempt follows a release'
);
set local idem.clock_offset = '2 hours';
select is((idem.reserve('shop', 'k', mode => 'leased')).outcome, 'unresolved', 'but no takeover follows');

select * from finish();
rollback;

begin;
select plan(4);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse, max_attempts) values ('once', 'retry', 1), ('thrice', 'retry', 3);
select idem.reserve('shop', 'once', mode => 'leased', policy => 'once');
select idem.reserve('shop', 'thrice', mode => 'leased', policy => 'thrice');

set local idem.clock_offset = '1 hour';
select is((idem.reserve('shop', 'once', mode => 'leased')).outcome, 'unresolved', 'one attempt is no takeover');
select is((idem.reserve('shop', 'thrice', mode => 'leased')).attempt, 2, 'the second of three');
set local idem.clock_offset = '2 hours';
select is((idem.reserve('shop', 'thrice', mode => 'leased')).attempt, 3, 'the third of three');
set local idem.clock_offset = '3 hours';
select results_eq(
    $$select outcome, attempt from idem.reserve('shop', 'thrice', mode => 'leased')$$,
    $$values ('unresolved', 3)$$, 'and no more'
);

select * from finish();
rollback;

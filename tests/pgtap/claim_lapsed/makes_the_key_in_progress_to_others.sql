begin;
select plan(6);

set local idem.single_transaction = on;

insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'k', '\x01', 'leased', policy => 'again');
set local idem.clock_offset = '2 minutes';
select idem.claim_lapsed(lease => '5 minutes');

select results_eq(
    $$select outcome, retry_after from idem.reserve('shop', 'k', '\x01', 'leased')$$,
    $$values ('in_progress', interval '1 second')$$, 'leased'
);
select is((idem.reserve('shop', 'k', '\x01')).outcome, 'in_progress', 'atomic');
select is((idem.reserve('shop', 'k', '\x02')).outcome, 'mismatch', 'another request is one');
select is(idem.once('shop', 'k'), 'in_progress', 'once');
select is_empty('select * from idem.claim_lapsed()', 'another resolver does not get it');
set local idem.clock_offset = '8 minutes';
select results_eq(
    $$select outcome, attempt from idem.reserve('shop', 'k', '\x01', 'leased')$$, $$values ('started', 2)$$,
    'until the lease of the claim is over'
);

select * from finish();
rollback;

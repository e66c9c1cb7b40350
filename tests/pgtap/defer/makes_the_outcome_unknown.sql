begin;
select plan(5);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'hold', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve(
    'shop', 'retry', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again'
);

select is(idem.defer('shop', 'hold', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'), true);
select is((idem.lookup('shop', 'hold')).outcome, 'lapsed', 'the lease ends at once');
select is((idem.reserve('shop', 'hold', mode => 'leased')).outcome, 'unresolved', 'hold says so');
select is(
    idem.defer('shop', 'retry', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', retry_in => '1 hour', reason => 'timeout'), true
);
select results_eq(
    $$select outcome, attempt from idem.reserve('shop', 'retry', mode => 'leased')$$,
    $$values ('started', 2)$$, 'retry takes over at once: retry_in delays resolvers only'
);

select * from finish();
rollback;

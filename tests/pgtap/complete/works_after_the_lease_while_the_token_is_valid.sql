begin;
select plan(3);

set local idem.single_transaction = on;
insert into idem.policies (name, on_lapse) values ('again', 'retry');
select idem.reserve('shop', 'hold', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.reserve(
    'shop', 'retry', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', policy => 'again'
);

set local idem.clock_offset = '10 years';
select is(idem.complete('shop', 'hold', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true, 'under hold');
select is(idem.complete('shop', 'retry', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 201), true, 'under retry');
select is((idem.reserve('shop', 'hold')).outcome, 'replay', 'and the answer is kept');

select * from finish();
rollback;

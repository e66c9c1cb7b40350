begin;
select plan(2);

set local idem.single_transaction = on;
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', '10 minutes', 'provider timed out');

select is((select reason from idem.keys), 'provider timed out');
select ok((
    select claim_after between clock_timestamp() + interval '9 minutes' and clock_timestamp() + interval '10 minutes'
    from idem.keys
));

select * from finish();
rollback;

begin;
select plan(5);

select
    case
        when current_setting('server_version_num')::int >= 170000 then 'infinity' else '178000000 years'
    end as endless
\gset
set local idem.single_transaction = on;
create temp table bad (retry_in) as values ('0'), ('-1 second'), ('1 day -25 hours'), (:'endless');
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');

select throws_ok(
    format($$select idem.defer('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', %L)$$, retry_in),
    '22023', null, retry_in
) from bad;
select is((idem.lookup('shop', 'k')).outcome, 'in_progress', 'nothing has changed');

select * from finish();
rollback;

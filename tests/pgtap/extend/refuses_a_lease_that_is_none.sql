begin;
select plan(5);

select
    case
        when current_setting('server_version_num')::int >= 170000 then 'infinity' else '178000000 years'
    end as endless
\gset
set local idem.single_transaction = on;
create temp table bad (lease) as values ('0'), ('-1 second'), ('1 day -25 hours'), (:'endless');
select idem.reserve('shop', 'k', mode => 'leased', token => 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa');
create temp table before as table idem_private.reservation;

select throws_ok(
    format($$select idem.extend('shop', 'k', 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', %L)$$, lease),
    '22023', null, lease
) from bad;
select results_eq('table idem_private.reservation', 'table before', 'nothing has changed');

select * from finish();
rollback;

begin;
select plan(8);

select
    case
        when current_setting('server_version_num')::int >= 170000 then 'infinity' else '178000000 years'
    end as endless
\gset
set local idem.single_transaction = on;
create temp table bad (lease) as values
    ('0'), ('0 seconds'), ('-1 second'), ('-1 microsecond'), ('1 day -25 hours'), ('1 month -30 days'),
    ('-178000000 years'), (:'endless');

select throws_ok(
    format('select idem.reserve(''shop'', ''k'', mode => ''leased'', lease => %L)', lease), '22023', null, lease
) from bad;

select * from finish();
rollback;

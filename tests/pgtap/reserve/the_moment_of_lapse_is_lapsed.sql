-- The interval is half-open: alive while now < lease_until. Only a clock that stands still can hit the moment.
begin;
select plan(2);

create function pg_temp.stop_clock(at timestamptz) returns void language plpgsql as $$
begin
    execute format(
        'create or replace function idem_private.clock() returns timestamptz language sql as %L',
        format('select timestamptz %L', at)
    );
end
$$;

set local idem.single_transaction = on;
create temp table answer as select * from idem.reserve('shop', 'k', mode => 'leased');

select pg_temp.stop_clock((select lease_until - interval '1 microsecond' from answer));
select is((idem.reserve('shop', 'k')).outcome, 'in_progress', 'a microsecond before');
select pg_temp.stop_clock((select lease_until from answer));
select is((idem.reserve('shop', 'k')).outcome, 'unresolved', 'at the moment');

select * from finish();
rollback;

-- What still is answered stays, what is not goes. Only a clock that stands still can hit the moment.
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

select idem.complete('shop', 'k', token, 200) from idem.reserve('shop', 'k');
create temp table answer as select * from idem.reserve('shop', 'k');

select pg_temp.stop_clock((select expires_at - interval '1 microsecond' from answer));
select is(idem.purge(), 0::bigint, 'a microsecond before');
select pg_temp.stop_clock((select expires_at from answer));
select is(idem.purge(), 1::bigint, 'at the moment');

select * from finish();
rollback;

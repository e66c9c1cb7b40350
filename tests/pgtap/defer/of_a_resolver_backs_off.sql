begin;
select plan(2);

set local idem.single_transaction = on;

insert into idem.policies (name, max_claims) values ('many', 100);
select idem.reserve('shop', 'k', mode => 'leased', policy => 'many');

create function pg_temp.waits(claims int) returns interval[] language plpgsql as $$
declare
    waits interval[];
begin
    for n in 1..claims loop
        perform set_config('idem.clock_offset', n || ' days', true);
        perform idem.defer(scope, key, token) from idem.claim_lapsed();
        waits := waits || (
            select claim_after - lease_until from idem.keys
        );
    end loop;
    return waits;
end
$$;

select is(
    pg_temp.waits(12),
    array[
        '10 s', '20 s', '40 s', '80 s', '160 s', '320 s', '640 s', '1280 s', '2560 s', '1 hour', '1 hour', '1 hour'
    ]::interval[],
    'ever longer, up to an hour'
);
set local idem.clock_offset = '30 days';
select is((
    select idem.defer(scope, key, token, retry_in => '7 hours') from idem.claim_lapsed()
), true, 'unless told');

select * from finish();
rollback;

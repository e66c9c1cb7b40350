begin;
select plan(2);

set local idem.single_transaction = on;

select idem.complete('shop', n || '', token, 201, null, 'x')
from generate_series(1, 2000) as n, idem.reserve('shop', n || '');
select idem.reserve('shop', 'k', mode => 'leased');
analyze idem_private.reservation, idem_private.unfinished;

create function pg_temp.plan(query text) returns text language plpgsql as $$
declare
    line text;
    plan text := '';
begin
    for line in execute 'explain ' || query loop
        plan := plan || line || e'\n';
    end loop;
    return plan;
end
$$;
select doesnt_match(
    pg_temp.plan($$select * from idem.keys where unfinished and outcome = 'lapsed'$$), 'Seq Scan on reservation'
);
select results_eq('select key collate "default" from idem.keys where unfinished', $$values ('k')$$);

select * from finish();
rollback;

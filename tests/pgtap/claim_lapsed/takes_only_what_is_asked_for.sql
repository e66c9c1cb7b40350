begin;
select plan(6);

set local idem.single_transaction = on;

insert into idem.policies (name) values ('other');
select idem.reserve(scope, key, mode => 'leased', policy => policy)
from unnest('{shop,bank}'::text[]) as scope, unnest('{a,b}'::text[]) as key, unnest('{default}'::text[]) as policy;
select idem.reserve('shop', 'c', mode => 'leased', policy => 'other');
set local idem.clock_offset = '2 minutes';

create function pg_temp.claimed(statement text) returns text[] language plpgsql as $$
declare
    keys text[];
begin
    execute 'select array_agg(scope || key order by scope, key) from ' || statement into keys;
    raise exception using errcode = 'UNDO1', message = 'undone';
exception when sqlstate 'UNDO1' then
    return keys;
end
$$;

select is(pg_temp.claimed('idem.claim_lapsed()'), '{banka,bankb,shopa,shopb,shopc}'::text[]);
select is(pg_temp.claimed($$idem.claim_lapsed(scope => 'shop')$$), '{shopa,shopb,shopc}'::text[], 'a scope');
select is(pg_temp.claimed($$idem.claim_lapsed(key => 'a')$$), '{banka,shopa}'::text[], 'a key');
select is(pg_temp.claimed($$idem.claim_lapsed(policy => 'other')$$), '{shopc}'::text[], 'a policy');
select is(pg_temp.claimed($$idem.claim_lapsed(scope => 'shop', key => 'b')$$), '{shopb}'::text[], 'one');
select is(
    pg_temp.claimed($$idem.claim_lapsed(scope => 'bank', key => 'c', policy => 'other')$$), null, 'or what is not there'
);

select * from finish();
rollback;

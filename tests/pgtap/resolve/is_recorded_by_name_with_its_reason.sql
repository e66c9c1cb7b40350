begin;
select plan(2);

set local idem.single_transaction = on;

create role idem_on_call;
create role idem_team;
grant usage on schema idem to idem_team;
grant execute on function idem.resolve(text, text, text, text, int, boolean, int, jsonb, bytea) to idem_team;
select idem.reserve('shop', key, mode => 'leased') from unnest('{a,b}'::text[]) as key;
set local idem.clock_offset = '2 minutes';
set local role idem_team;
select idem.resolve('shop', 'a', 'release', 'the provider has no charge');
reset role;
select idem.resolve('shop', 'b', 'complete', 'the provider has it', attempt => 1, status => 201, body => 'secret');

select results_eq(
    $$select attempt, by_role, reason, detail from idem.history('shop', 'a') where event = 'resolved'$$,
    $$
        select
            1, 'idem_team'::name, 'the provider has no charge',
            jsonb_build_object('action', 'release', 'session_user', session_user)
    $$,
    'though the row has gone'
);
select results_eq(
    $$select attempt, by_role, reason, detail from idem.history('shop', 'b') where event = 'resolved'$$,
    $$select 1, session_user::name, 'the provider has it', '{"action": "complete", "status": 201}'::jsonb$$
);

select * from finish();
rollback;

-- The options of a membership came with PostgreSQL 16; before that each can be set.
begin;
\ir ../refusal.psql
select plan(5);

create role idem_group;
create role idem_middle;
create role idem_application;
select idem.grant_client('idem_application');
select idem.bind_scope('idem_group', 'group');

create function pg_temp.bound(middle text, application text) returns boolean language plpgsql as $$
declare
    refusal text;
    has_options constant boolean := current_setting('server_version_num')::int >= 160000;
begin
    revoke idem_group from idem_middle;
    revoke idem_middle from idem_application;
    if has_options then
        execute 'grant idem_group to idem_middle with ' || middle;
        execute 'grant idem_middle to idem_application with ' || application;
    else
        grant idem_group to idem_middle;
        grant idem_middle to idem_application;
    end if;
    set local role idem_application;
    refusal := pg_temp.refusal($statement$select idem.lookup('other', 'k')$statement$);
    reset role;
    return case refusal when 'not refused' then false when '42501 scope_not_allowed' then true end;
end
$$;

select is(pg_temp.bound('inherit true, set false', 'inherit true, set false'), true, 'inherited twice');
select is(pg_temp.bound('inherit false, set true', 'inherit false, set true'), true, 'set twice');
select is(pg_temp.bound('inherit true, set false', 'inherit false, set true'), true, 'inherited by what is set');
select is(
    pg_temp.bound('inherit false, set true', 'inherit true, set false'),
    current_setting('server_version_num')::int < 160000,
    'what is inherited from cannot set'
);
select is(
    pg_temp.bound('inherit true, set true', 'inherit false, set false, admin true'),
    current_setting('server_version_num')::int < 160000,
    'a membership that only administers gives nothing'
);

select * from finish();
rollback;

-- session_user is a superuser here, which is bound only under its own name: what SET ROLE takes on decides.
begin;
\ir ../refusal.psql
select plan(12);

create role idem_bound;
create role idem_free;
create role idem_group;
create role idem_groups;
create role idem_member in role idem_group;
create role idem_grandchild noinherit in role idem_member;
create role idem_super superuser in role idem_bound;
select idem.grant_client(r.name)
from unnest(array[
    'idem_bound', 'idem_free', 'idem_group', 'idem_groups', 'idem_member', 'idem_grandchild', 'idem_super'
]) as r (name);
select idem.bind_scope('idem_bound', 'one');
select idem.bind_scope('idem_group', 'two');

create function pg_temp.allows(role name, scope text) returns boolean language plpgsql as $$
declare
    refusal text;
begin
    execute format('set local role %I', role);
    refusal := pg_temp.refusal(format('select idem.lookup(%L, %L)', scope, 'k'));
    reset role;
    return case refusal when 'not refused' then true when '42501 scope_not_allowed' then false end;
end
$$;

select is(pg_temp.allows('idem_bound', 'one'), true, 'a bound role');
select is(pg_temp.allows('idem_bound', 'two'), false, 'has no other scope');
select is(pg_temp.allows('idem_free', 'two'), true, 'a role that is bound nowhere has all');
select is(pg_temp.allows('idem_member', 'two'), true, 'a member of a bound group');
select is(pg_temp.allows('idem_member', 'one'), false, 'is bound');
select is(pg_temp.allows('idem_grandchild', 'one'), false, 'as is a member of a member, which can become it');
select is(pg_temp.allows('idem_super', 'two'), true, 'a superuser is not bound by its memberships');
select idem.bind_scope('idem_super', 'three');
select is(pg_temp.allows('idem_super', 'two'), false, 'but under its own name');

grant idem_free to idem_bound;
select is(pg_temp.allows('idem_bound', 'two'), false, 'being a member of a free role does not free');
grant idem_group to idem_bound;
select is(pg_temp.allows('idem_bound', 'two'), true, 'the prefixes of all of them add up');
select is(pg_temp.allows('idem_bound', 'three'), false, 'and no more');

alter role idem_group rename to idem_groups_now;
select is(pg_temp.allows('idem_member', 'one'), false, 'a binding outlives the renaming of its role');

select * from finish();
rollback;

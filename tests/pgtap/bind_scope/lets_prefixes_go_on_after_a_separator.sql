begin;
\ir ../refusal.psql
select plan(27);

create role idem_application;
select idem.grant_client('idem_application');

create temp table cases (number int generated always as identity, prefix text, scope text, allowed boolean);
insert into cases (prefix, scope, allowed) values
    ('client:42', 'client:42', true),
    ('client:42', 'client:42:cards', true),
    ('client:42', 'client:42/eu', true),
    ('client:42', 'client:42:', true),
    ('client:42', 'client:421', false),
    ('client:42', 'client:4', false),
    ('client:42', 'client:42-b', false),
    ('client:42', 'client:42 ', false),
    ('client:42', 'Client:42', false),
    ('client:42', ' client:42', false),
    ('client:42', 'x:client:42', false),
    ('client:', 'client:', true),
    ('client:', 'client:42', true),
    ('client:', 'client', false),
    ('client:', 'clients:42', false),
    ('client/', 'client/42', true),
    ('client-', 'client-42', true),
    ('client-', 'client', false),
    ('client_', 'client_42', true),
    ('client.', 'client.42', true),
    ('client#', 'client#42', true),
    ('client1', 'client12', false),
    ('caf' || chr(233), 'caf' || chr(233) || '2', false),
    ('caf' || chr(233), 'caf' || chr(233) || ':2', true),
    ('100%', '100%x', true),
    ('a_c', 'abc', false),
    ('a%', 'abc', false);

create function pg_temp.allows(prefix text, scope text) returns boolean language plpgsql as $$
declare
    refusal text;
begin
    perform idem.unbind_scope('idem_application');
    perform idem.bind_scope('idem_application', prefix);
    set local role idem_application;
    refusal := pg_temp.refusal(format('select idem.lookup(%L, %L)', scope, 'k'));
    reset role;
    return case refusal when 'not refused' then true when '42501 scope_not_allowed' then false end;
end
$$;
grant execute on function pg_temp.refusal(text) to idem_application;

select is(pg_temp.allows(prefix, scope), allowed, format('%s and %s', prefix, scope)) from cases order by number;

select * from finish();
rollback;

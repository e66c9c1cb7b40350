-- Two sessions that change the rights of one object at once would meet an internal error, so they take turns, and a
-- migration is one of them.
create or replace function idem_private.give_access(role name, given text) returns void
language plpgsql volatile as $$
declare
    allowed record;
begin
    perform idem_private.check_role(give_access.role);
    perform pg_advisory_xact_lock(hashtextextended('pyidem.migrate', 0));
    execute format('grant usage on schema idem to %I', give_access.role);
    for allowed in
        select
            r.privileges,
            case
                when r.privileges = 'execute' then 'routine ' || r.object::regproc::regprocedure
                else 'table ' || r.object::regclass
            end as object
        from idem_private.rights() as r
        where give_access.given = any(r.given_by)
    loop
        execute format('grant %s on %s to %I', allowed.privileges, allowed.object, give_access.role);
    end loop;
    insert into idem_private.access (role, given)
    values (quote_ident(give_access.role)::regrole, give_access.given)
    on conflict do nothing;
end
$$;

comment on function idem_private.give_access(name, text) is 'Gives a role what a grant gives, and remembers that it did.';

revoke all on function idem_private.give_access(name, text) from public;

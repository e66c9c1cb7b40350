create or replace function idem_private.health_of_installation()
returns table (check_name text, ok boolean, detail text, fix text)
language plpgsql stable as $$
declare
    revision text;
begin
    if to_regclass('idem_private.alembic_version') is not null then
        select v.version_num::text into revision from idem_private.alembic_version as v;
    end if;
    check_name := 'version';
    ok := revision is not null;
    detail := format('pyidem %s, revision %s', idem.version(), coalesce(revision, 'unknown'));
    fix := 'insert into idem_private.alembic_version (version_num) values (''REVISION'');  -- pyidem sql shows the last one';
    return next;

    check_name := 'drift';
    select
        count(*) = 0,
        case
            when count(*) = 0 then 'every object is as the revision made it'
            else format(
                '%s not as the revision made them: %s%s', count(*),
                string_agg(d.object || ' ' || d.problem, ', ') filter (where d.number <= 3),
                case when count(*) > 3 then ', ...' end
            )
        end,
        coalesce(
            'psql -X -q '
            || string_agg(
                distinct '-f sql/*/' || substring(d.object from '^(?:function|procedure|view) \w+\.(\w+)') || '.sql', ' '
            ) filter (where d.problem <> 'extra')
            || '  # in a checkout of this version; what differs: select * from idem_private.drift()',
            'select * from idem_private.drift();  -- and put back, or drop, what it names'
        )
    into ok, detail, fix
    from (
        select d.object, d.problem, row_number() over () as number from idem_private.drift() as d
    ) as d;
    return next;
end
$$;

comment on function idem_private.health_of_installation() is 'Checks of idem.health: what is installed, and what was changed since.';

revoke all on function idem_private.health_of_installation() from public;

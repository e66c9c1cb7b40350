"""Rules that every installed object keeps, asked of the catalog."""

import pytest

from tests.support.database import Database

OURS = "('idem'::regnamespace, 'idem_private'::regnamespace)"
PINNED = "'search_path=pg_catalog, pg_temp' = any(coalesce(p.proconfig, '{}'))"

# They run the caller's code with the caller's rights and search_path.
FREE = "('idem.run'::text, 'idem.purge_all')"

EXCEPTIONS = {
    "a function is granted to PUBLIC": f"""
        select p.oid::regprocedure::text from pg_proc as p
        cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
        where p.pronamespace in {OURS} and a.grantee = 0""",
    "a relation is granted to PUBLIC": f"""
        select c.oid::regclass::text from pg_class as c cross join lateral aclexplode(c.relacl) as a
        where c.relnamespace in {OURS} and a.grantee = 0""",
    "a schema is granted to PUBLIC": f"""
        select n.nspname::text from pg_namespace as n cross join lateral aclexplode(n.nspacl) as a
        where n.oid in {OURS} and a.grantee = 0""",
    "a function of the API does not pin its search_path": f"""
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'idem'::regnamespace and not {PINNED} and p.oid::regproc::text not in {FREE}""",
    "a function of the API does not run with its owner's rights": f"""
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'idem'::regnamespace and not p.prosecdef and p.oid::regproc::text not in {FREE}""",
    "a function that a session can reach by itself does not pin its search_path": f"""
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'idem_private'::regnamespace and not {PINNED}
            and (
                p.prosecdef or p.prorettype = 'trigger'::regtype
                or exists (select from aclexplode(p.proacl) as a where a.grantee <> p.proowner)
            )""",
    "a function is overloaded": f"""
        select p.pronamespace::regnamespace || '.' || p.proname from pg_proc as p
        where p.pronamespace in {OURS} group by 1 having count(*) > 1""",
    "an object of the API has no comment": """
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'idem'::regnamespace and obj_description(p.oid, 'pg_proc') is null
        union all
        select c.oid::regclass::text from pg_class as c
        where c.relnamespace = 'idem'::regnamespace and c.relkind <> 'c' and obj_description(c.oid, 'pg_class') is null
        union all
        select t.oid::regtype::text from pg_type as t inner join pg_class as c on t.typrelid = c.oid
        where t.typnamespace = 'idem'::regnamespace and c.relkind = 'c'
            and obj_description(t.oid, 'pg_type') is null""",
    "an object belongs to another role than its schema": f"""
        select o.name from (
            select p.oid::regprocedure::text as name, p.pronamespace as schema, p.proowner as owner from pg_proc as p
            union all select c.oid::regclass::text, c.relnamespace, c.relowner from pg_class as c
            union all select t.oid::regtype::text, t.typnamespace, t.typowner from pg_type as t
            union all select n.nspname, 'idem'::regnamespace, n.nspowner from pg_namespace as n where n.oid in {OURS}
        ) as o
        inner join pg_namespace as n on o.schema = n.oid
        where n.oid in {OURS} and o.owner <> n.nspowner""",
    "a role gets at a table or into the private schema": """
        select c.oid::regclass::text from pg_class as c cross join lateral aclexplode(c.relacl) as a
        where c.relnamespace = 'idem_private'::regnamespace and a.grantee <> c.relowner
        union all
        select n.nspname::text from pg_namespace as n cross join lateral aclexplode(n.nspacl) as a
        where n.nspname = 'idem_private' and a.grantee <> n.nspowner""",
    "a function of the API is in no line of idem_private.rights, or in two": """
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'idem'::regnamespace
            and (select count(*) from idem_private.rights() as r where r.object = 'idem.' || p.proname) <> 1""",
    "a line of idem_private.rights is of nothing": """
        select r.object from idem_private.rights() as r
        where to_regproc(r.object) is null and to_regclass(r.object) is null""",
    "a function of the API has an argument without a name": """
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'idem'::regnamespace and p.pronargs > coalesce(cardinality(p.proargnames), 0)""",
}


@pytest.mark.parametrize("query", EXCEPTIONS.values(), ids=[f"never {fault}" for fault in EXCEPTIONS])
def test_no_object_breaks_the_rule(query: str, db: Database) -> None:
    with db.connect(autocommit=True) as connection:
        for grant in ("client", "resolver", "monitor", "operator"):
            connection.execute(f"select idem.grant_{grant}(%s)", [db.create_role(grant)])
        assert connection.execute(query.encode()).fetchall() == []

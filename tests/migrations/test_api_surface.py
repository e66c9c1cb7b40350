"""The public API changes only on purpose: tests/golden/api.txt shows it.

After a change on purpose write it anew and review the difference:

    PYIDEM_UPDATE_GOLDEN=1 make test ARGS=tests/migrations/test_api_surface.py
"""

import os
from pathlib import Path

import psycopg

from tests.support.database import ROOT, Database

GOLDEN = ROOT / "tests" / "golden" / "api.txt"
QUERY = (Path(__file__).parent / "api.sql").read_text()


def test_the_public_api_is_the_reviewed_one(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        api = "".join(f"{line}\n" for (line,) in connection.execute(QUERY))
    if os.environ.get("PYIDEM_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(api)

    assert GOLDEN.exists(), "tests/golden/api.txt is missing: write it as this file's docstring says"
    assert api == GOLDEN.read_text(), "the public API has changed: see this file's docstring"


def test_no_public_function_is_overloaded(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        overloaded = connection.execute(
            "select p.proname from pg_proc as p where p.pronamespace = 'idem'::regnamespace"
            " group by p.proname having count(*) > 1"
        ).fetchall()

    assert overloaded == []


def test_every_public_object_has_a_comment(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        silent = connection.execute(
            "select p.oid::regprocedure::text from pg_proc as p"
            " where p.pronamespace = 'idem'::regnamespace and obj_description(p.oid, 'pg_proc') is null"
            " union all select r.oid::regclass::text from pg_class as r where r.relnamespace = 'idem'::regnamespace"
            " and coalesce(obj_description(r.oid, 'pg_class'), obj_description(r.reltype, 'pg_type')) is null"
        ).fetchall()

    assert silent == []


def test_nothing_is_granted_to_public_and_nobody_gets_into_the_private_schema(db: Database) -> None:
    role = db.create_role()
    with psycopg.connect(db.dsn_of(role)) as connection:
        allowed = connection.execute(
            "select n.nspname from pg_namespace as n where n.nspname like 'idem%'"
            " and (has_schema_privilege(n.oid, 'USAGE') or has_schema_privilege(n.oid, 'CREATE'))"
            " union all select p.oid::regprocedure::text from pg_proc as p"
            " where p.pronamespace::regnamespace::text like 'idem%' and has_function_privilege(p.oid, 'EXECUTE')"
            " union all select r.oid::regclass::text from pg_class as r"
            " where r.relnamespace::regnamespace::text like 'idem%' and r.relkind in ('r', 'v', 'm', 'S')"
            " and has_table_privilege(r.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')"
        ).fetchall()

    assert allowed == []

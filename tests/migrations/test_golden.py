"""The schema and the public API change only on purpose: tests/golden shows them.

After a change on purpose write both files anew and review the difference:

    PYIDEM_UPDATE_GOLDEN=1 make test ARGS=tests/migrations/test_golden.py
"""

import os
from pathlib import Path

import psycopg
import pytest

from tests.support.database import ROOT, Database

GOLDEN = ROOT / "tests" / "golden"


@pytest.mark.parametrize(
    ("query", "file", "between"), [("api.sql", "api.txt", "\n"), ("schema.sql", "schema.sql", "\n\n")]
)
def test_what_is_installed_is_what_was_reviewed(query: str, file: str, between: str, db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        rows = connection.execute((Path(__file__).parent / query).read_bytes()).fetchall()
    installed = between.join(text for (text,) in rows) + "\n"
    golden = GOLDEN / file
    if os.environ.get("PYIDEM_UPDATE_GOLDEN") == "1":
        golden.write_text(installed)

    assert golden.exists(), f"{file} is missing: write it as this file's docstring says"
    assert installed == golden.read_text(), f"{file} has changed: see this file's docstring"


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

"""What a revision locks of what was there before, and that it does not depend on how many keys there are."""

from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from pyidem import migrate
from tests.docs.blocks import MIGRATIONS, rows, sections
from tests.migrations.next_version import FIRST, SECOND, Checkout
from tests.migrations.support import owner_dsn
from tests.support.calls import complete, reserve
from tests.support.database import OWNER, Database

ACCESS_EXCLUSIVE = "AccessExclusiveLock"
WRITES = "RowExclusiveLock"
"""What an insert or update takes too: it makes no reader and no writer wait."""

FILES = "select c.oid::regclass::text, pg_relation_filenode(c.oid) from pg_class as c where c.relkind in ('r', 'i')"
READ = """
select coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)
from pg_class as c
where c.oid = any(%s)
"""
TABLES = """
select c.oid, c.oid::regclass::text from pg_class as c
where c.relkind = 'r' and c.relnamespace in ('idem_private'::regnamespace, 'public'::regnamespace)
"""
LOCKS = """
select l.relation, l.mode from pg_locks as l
where l.pid = pg_backend_pid() and l.locktype = 'relation' and l.relation = any(%s) and l.mode <> 'AccessShareLock'
"""


@dataclass
class Step:
    """What a step from one revision to another did to the tables that were there before."""

    locked: dict[str, set[str]]
    rewritten: set[str]
    read: int


def take(database: Database, text: str, *, loaded: str | None = None) -> Step:
    """Run all of a step but its COMMIT; it is rolled back."""
    body = text.rstrip().removesuffix("COMMIT;")
    assert body != text.rstrip()
    with psycopg.connect(owner_dsn(database), autocommit=True) as connection:
        tables = dict(connection.execute(TABLES.encode()).fetchall())
        files = dict(connection.execute(FILES).fetchall())
        counted = [oid for oid, name in tables.items() if name == loaded]
        connection.execute(body.encode())
        locked: dict[str, set[str]] = {}
        for oid, mode in connection.execute(LOCKS.encode(), [list(tables)]).fetchall():
            locked.setdefault(tables[oid], set()).add(mode)
        after = dict(connection.execute(FILES).fetchall())
        read = connection.execute(READ.encode(), [counted]).fetchall()[0][0]
        connection.execute("rollback")
    return Step(locked, {name for name, file in files.items() if after.get(name, file) != file}, int(read))


@pytest.fixture
def loaded(db: Database) -> Database:
    """A database with keys, and with a table of the host's."""
    with psycopg.connect(db.dsn, autocommit=True) as admin:
        admin.execute("create table public.orders (id int primary key)")
        admin.execute(f"alter table public.orders owner to {OWNER}".encode())
        admin.execute(
            "insert into idem.policies (name, max_batch) values ('many', 2000);"
            "select count(*) from idem.once_many('s', array(select n::text from generate_series(1, 2000) as n), 'many')"
        )
    with psycopg.connect(db.dsn) as connection:
        complete(connection, "k", reserve(connection, "k").token, status=201)
    return db


def exclusively(step: Step) -> set[str]:
    return {table for table, modes in step.locked.items() if ACCESS_EXCLUSIVE in modes}


def test_the_first_installation_locks_nothing_that_was_there(empty_db: Database) -> None:
    with psycopg.connect(empty_db.dsn, autocommit=True) as admin:
        admin.execute("create schema idem_private; create table public.orders (id int primary key)")
        admin.execute(f"alter schema idem_private owner to {OWNER}".encode())
    step = take(empty_db, migrate.sql("base", FIRST))

    assert (step.locked, step.rewritten) == ({}, set())


def test_a_downgrade_to_base_locks_the_tables_of_pyidem_alone_and_reads_none(loaded: Database) -> None:
    step = take(loaded, migrate.sql(FIRST, "base"), loaded="idem_private.reservation")

    with psycopg.connect(loaded.dsn) as connection:
        ours = {name for _, name in connection.execute(TABLES.encode()) if name.startswith("idem_private.")}
    # which holds the revision, and stays
    assert exclusively(step) == ours - {"idem_private.alembic_version"}
    assert step.locked["idem_private.alembic_version"] == {WRITES}
    assert "orders" not in step.locked
    assert step.read == 0


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_later_revision_neither_rewrites_nor_reads_the_keys(
    direction: str, later: Checkout, loaded: Database
) -> None:
    there, back = ("--from", FIRST), ("--from", SECOND, "--to", FIRST)
    if direction == "down":
        assert later.pyidem("upgrade", "--dsn", owner_dsn(loaded)).returncode == 0
    rendered = later.pyidem("sql", *(there if direction == "up" else back))
    assert rendered.returncode == 0, rendered.stderr
    step = take(loaded, rendered.stdout, loaded="idem_private.reservation")

    # The column that the revision adds or drops; all else is functions and views, and what is recorded of them.
    assert exclusively(step) - {"idem_private.added"} == {"idem_private.reservation"}
    others = {table for table, modes in step.locked.items() if modes - {WRITES}} - exclusively(step)
    assert others == set()
    assert (step.rewritten, step.read) == (set(), 0)


def test_the_page_lists_every_revision() -> None:
    listed = [row[0] for row in rows(sections(MIGRATIONS)["What each revision locks"])]
    revisions = sorted(path.stem for path in Path(migrate.resource("migrations") / "versions").glob("*.py"))

    assert listed == [f"`{revision}` {direction}" for revision in revisions for direction in ("up", "down")]

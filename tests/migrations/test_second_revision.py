"""A second revision leads from the first to what is in sql/, and exactly back."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pyidem.embedded import Cluster
from tests.migrations.next_version import FIRST, SECOND, Checkout
from tests.migrations.support import Catalog, catalog, owner_dsn, recorded_objects, run_sql
from tests.support.database import Database, new_database


@pytest.fixture(scope="module")
def after(db_of_later: Database) -> Catalog:
    """The catalog of a database in which psql installed the later version."""
    return catalog(db_of_later)


@pytest.fixture(scope="module")
def db_of_later(later: Checkout, server: Cluster) -> Iterator[Database]:
    with new_database(server) as database:
        database.psql(later.sql / "install.sql", user=database.owner)
        yield database


def upgrade(later: Checkout, database: Database, *arguments: str) -> None:
    done = later.pyidem("upgrade", *arguments, "--dsn", owner_dsn(database))
    assert done.returncode == 0, done.stderr


def downgrade(later: Checkout, database: Database, *arguments: str) -> None:
    done = later.pyidem("downgrade", *arguments, "--yes", "--dsn", owner_dsn(database))
    assert done.returncode == 0, done.stderr


def current(later: Checkout, database: Database) -> str:
    return later.pyidem("current", "--dsn", owner_dsn(database)).stdout.strip()


def drift(database: Database) -> list[tuple[str, ...]]:
    with psycopg.connect(owner_dsn(database)) as connection:
        return connection.execute("select * from idem_private.drift()").fetchall()


def test_an_upgraded_database_is_as_one_that_was_installed_new(
    later: Checkout, db: Database, after: Catalog, db_of_later: Database
) -> None:
    upgrade(later, db)

    assert current(later, db) == f"{SECOND} (head)"
    assert catalog(db) == after
    assert recorded_objects(db) == recorded_objects(db_of_later)
    assert drift(db) == []


def test_all_revisions_from_nothing_are_as_a_new_installation(
    later: Checkout, empty_db: Database, after: Catalog
) -> None:
    upgrade(later, empty_db)

    assert catalog(empty_db) == after


def test_one_revision_after_the_other_is_as_all_at_once(later: Checkout, empty_db: Database, after: Catalog) -> None:
    for revision in (FIRST, SECOND):
        upgrade(later, empty_db, revision)
        assert current(later, empty_db).split()[0] == revision

    assert catalog(empty_db) == after


def test_offline_text_does_what_the_upgrade_does(later: Checkout, db: Database, after: Catalog, tmp_path: Path) -> None:
    text = later.pyidem("sql", "--from", FIRST)
    assert text.returncode == 0, text.stderr
    run_sql(db, text.stdout, tmp_path)

    assert current(later, db) == f"{SECOND} (head)"
    assert catalog(db) == after
    assert drift(db) == []


@pytest.mark.parametrize("offline", [False, True], ids=["online", "offline"])
def test_a_downgrade_gives_exactly_the_first_revision(
    offline: bool, later: Checkout, db: Database, tmp_path: Path
) -> None:
    before, objects = catalog(db), recorded_objects(db)
    upgrade(later, db)
    if offline:
        run_sql(db, later.pyidem("sql", "--from", SECOND, "--to", FIRST).stdout, tmp_path)
    else:
        downgrade(later, db, "-1")

    assert current(later, db) == FIRST
    assert catalog(db) == before
    assert recorded_objects(db) == objects
    assert drift(db) == []


def test_up_down_up_ends_where_up_did(later: Checkout, db: Database, after: Catalog) -> None:
    upgrade(later, db)
    downgrade(later, db, FIRST)
    upgrade(later, db)

    assert catalog(db) == after
    assert drift(db) == []


def test_a_downgrade_of_both_leaves_only_the_version_table(later: Checkout, db: Database) -> None:
    upgrade(later, db)
    downgrade(later, db, "base")

    assert {name.partition(" ")[0] for kind, name in catalog(db) if kind == "relation"} == {
        "idem_private.alembic_version"
    }


def test_no_overload_is_left_and_an_old_call_finds_its_function(later: Checkout, db: Database) -> None:
    upgrade(later, db)

    with psycopg.connect(owner_dsn(db)) as connection:
        assert connection.execute(
            "select count(*) from pg_proc where proname in ('reserve', 'real_expiry') group by proname"
        ).fetchall() == [(1,), (1,)]
        assert connection.execute("select outcome from idem.reserve('s', 'k', policy => 'default')").fetchone() == (
            "started",
        )
        assert connection.execute("select outcome from idem.reserve('s', 'k2', added => 'x')").fetchone() == (
            "started",
        )
        connection.rollback()


def test_rights_of_roles_outlive_what_is_dropped_and_made_again(later: Checkout, db: Database) -> None:
    client, reader, granting = db.create_role("client"), db.create_role("reader"), db.create_role("granting")
    with psycopg.connect(owner_dsn(db)) as connection:
        connection.execute(f"select idem.grant_client('{client}')")
        connection.execute(f"grant usage on schema idem to {reader}; grant select on idem.keys to {reader}")
        connection.execute(f"grant execute on function idem.reserve to {granting} with grant option")
    before = rights(db)
    upgrade(later, db)
    assert rights(db) == before
    with psycopg.connect(db.dsn_of(client)) as connection:
        assert connection.execute("select outcome from idem.reserve('s', 'k')").fetchone() == ("started",)
        connection.rollback()
    downgrade(later, db, FIRST)

    assert rights(db) == before


def test_roles_that_hold_a_grant_get_what_an_upgrade_adds_to_it(later: Checkout, db: Database) -> None:
    client, revoked, dropped = db.create_role("client"), db.create_role("revoked"), db.create_role("dropped")
    by_hand = db.create_role("by_hand")
    with psycopg.connect(owner_dsn(db)) as connection:
        for role in (client, revoked, dropped):
            connection.execute("select idem.grant_client(%s)", [role])
        connection.execute("select idem.revoke_access(%s)", [revoked])
        connection.execute(
            f"grant usage on schema idem to {by_hand}; grant execute on function idem.reserve to {by_hand}"
        )
    with psycopg.connect(db.dsn) as admin:
        admin.execute(f"drop owned by {dropped}; alter role {client} rename to {client}_now")
        admin.execute(f"drop role {dropped}; create role {dropped}")  # a stranger of the same name
    upgrade(later, db)

    with psycopg.connect(db.dsn) as admin:
        may = admin.execute(
            "select rolname from pg_roles where has_function_privilege(oid, 'idem.added()', 'execute')"
            " and not rolsuper and rolname <> %s",
            [db.owner],
        ).fetchall()
        admin.execute(f"alter role {client}_now rename to {client}")
    assert may == [(f"{client}_now",)]


def rights(database: Database) -> list[tuple[str, ...]]:
    """Who may do what with functions and views, but for those that only one of the two revisions has."""
    with psycopg.connect(database.dsn) as connection:
        return connection.execute(
            "select p.oid::regproc::text, a.grantee::regrole::text, a.is_grantable::text"
            " from pg_proc as p, aclexplode(p.proacl) as a where p.pronamespace = 'idem'::regnamespace"
            " and p.proname not in ('added', 'disable_testing')"
            " union all select r.oid::regclass::text, a.grantee::regrole::text, a.privilege_type"
            " from pg_class as r, aclexplode(r.relacl) as a where r.relnamespace = 'idem'::regnamespace"
            " order by 1, 2, 3"
        ).fetchall()


def test_a_view_of_others_on_what_must_be_dropped_stops_the_upgrade(later: Checkout, db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        connection.execute("create view public.mine as select * from idem.reserve('shop', 'k')")
    before = catalog(db)
    done = later.pyidem("upgrade", "--dsn", owner_dsn(db))

    assert done.returncode == 1
    assert "2BP01" in done.stderr
    assert "view mine depends on function idem.reserve" in done.stderr.replace("public.", "")
    assert catalog(db) == before
    assert current(later, db) == FIRST

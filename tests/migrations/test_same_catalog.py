"""Every way to install makes the same catalog, and a second installation after a downgrade does so again."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from migrations import freeze
from migrations.objects import is_repeatable
from pyidem import migrate
from tests.migrations.support import catalog, owner_dsn, recorded_objects, run_sql, shipped_rows
from tests.support.database import Database


def upgrade(database: Database, _: Path) -> None:
    assert migrate.upgrade(owner_dsn(database)) == [migrate.head()]


def offline(database: Database, tmp_path: Path) -> None:
    run_sql(database, migrate.sql(), tmp_path)


def single_file(database: Database, tmp_path: Path) -> None:
    run_sql(database, freeze.single_file(), tmp_path)


def single_file_at_once(database: Database, _: Path) -> None:
    """As a driver does that sends the file as one simple query."""
    with psycopg.connect(owner_dsn(database), autocommit=True) as connection:
        connection.execute(freeze.single_file().encode())


def up_down_up(database: Database, _: Path) -> None:
    migrate.upgrade(owner_dsn(database))
    assert migrate.downgrade(owner_dsn(database)) == [migrate.head()]
    migrate.upgrade(owner_dsn(database))


def offline_up_down_up(database: Database, tmp_path: Path) -> None:
    run_sql(database, migrate.sql(), tmp_path)
    run_sql(database, migrate.sql("head", "base"), tmp_path)
    run_sql(database, migrate.sql(), tmp_path)


def psql_after_downgrade(database: Database, _: Path) -> None:
    migrate.upgrade(owner_dsn(database))
    migrate.downgrade(owner_dsn(database))
    database.psql(migrate.resource("sql") / "install.sql", user=database.owner)


def psql_after_uninstall(database: Database, _: Path) -> None:
    for script in ("install.sql", "uninstall.sql", "install.sql"):
        database.psql(migrate.resource("sql") / script, user=database.owner)


WAYS = [
    upgrade,
    offline,
    single_file,
    single_file_at_once,
    up_down_up,
    offline_up_down_up,
    psql_after_downgrade,
    psql_after_uninstall,
]


@pytest.mark.parametrize("install", WAYS)
def test_every_way_makes_the_catalog_of_psql(
    install: Callable[[Database, Path], None], db: Database, empty_db: Database, tmp_path: Path
) -> None:
    install(empty_db, tmp_path)

    assert catalog(empty_db) == catalog(db)
    assert shipped_rows(empty_db) == shipped_rows(db)
    assert recorded_objects(empty_db) == recorded_objects(db)


def test_the_files_of_functions_and_views_are_whole_and_can_run_again(db: Database) -> None:
    before = catalog(db)
    files = [text for text in freeze.tree().values() if is_repeatable(text) and "create constraint trigger" not in text]
    with psycopg.connect(owner_dsn(db)) as connection:
        for text in files:
            connection.execute(text.encode())

    assert len(files) > 50
    assert catalog(db) == before


def test_the_snapshot_sees_every_kind_of_change(db: Database) -> None:
    before = catalog(db)
    changes = [
        "comment on schema idem is 'x'",
        "grant usage on schema idem to pg_monitor",
        "grant select on idem.keys to pg_monitor",
        "alter table idem_private.reservation set (fillfactor = 50)",
        "alter table idem_private.reservation alter column status set default 1",
        "alter table idem_private.reservation alter column headers set storage plain",
        "alter table idem_private.reservation add constraint positive check (attempt > 0)",
        "create index added on idem_private.reservation (attempt)",
        "alter table idem_private.reservation disable trigger reservation_completed",
        "alter function idem.version() cost 7",
        "grant execute on function idem.version() to pg_monitor",
        "comment on function idem.version() is 'x'",
        "alter type idem.reservation add attribute added int",
        "grant usage on type idem.reservation to pg_monitor",
        "alter view idem.keys owner to current_user",
    ]
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        for change in changes:
            connection.execute(change)
            after = catalog(db)
            assert after != before, change
            before = after


def test_an_upgrade_after_psql_has_nothing_to_do(db: Database) -> None:
    before = catalog(db)

    assert migrate.current(db.dsn) == migrate.head()
    assert migrate.upgrade(owner_dsn(db)) == []
    assert catalog(db) == before


def test_a_downgrade_to_base_leaves_only_the_version_table(db: Database) -> None:
    migrate.downgrade(owner_dsn(db))

    left = {(kind, name.partition(" ")[0]) for kind, name in catalog(db)}
    assert left == {
        ("schema", "idem_private"),
        ("relation", "idem_private.alembic_version"),
        ("column", "idem_private.alembic_version"),
        ("constraint", "idem_private.alembic_version"),
        ("index", "idem_private.alembic_version"),
        ("type", "idem_private.alembic_version"),
        ("type", "idem_private._alembic_version"),
    }
    assert migrate.current(db.dsn) is None


def test_a_downgrade_drops_nothing_of_others(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        connection.execute("create view public.mine as select * from idem.keys")
    before = catalog(db)

    with pytest.raises(Exception, match=r"view (public\.)?mine depends on view idem\.keys"):
        migrate.downgrade(owner_dsn(db))
    assert catalog(db) == before


def test_installing_twice_says_so_and_changes_nothing(db: Database, tmp_path: Path) -> None:
    before = catalog(db)
    with pytest.raises(AssertionError, match="pyidem is installed already"):
        run_sql(db, migrate.sql(), tmp_path)
    with pytest.raises(AssertionError, match='schema "idem" already exists'):
        db.psql(migrate.resource("sql") / "install.sql", user=db.owner)
    assert catalog(db) == before

"""Installation works in databases that are set up in unusual ways."""

from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text

from pyidem import migrate
from tests.migrations.support import catalog, is_installed, owner_dsn, run_sql, uri
from tests.support.database import Database


def alter(database: Database, change: str) -> None:
    with psycopg.connect(database.dsn) as connection:
        connection.execute(f"alter database {database.name} {change}")


def install(database: Database, way: str, tmp_path: Path, *, user: str | None = None) -> None:
    user = user or database.owner
    match way:
        case "psql":
            database.psql(migrate.resource("sql") / "install.sql", user=user)
        case "upgrade":
            migrate.upgrade(database.dsn_of(user))
        case "offline":
            run_sql(database, migrate.sql(), tmp_path, user=user)


ways = pytest.mark.parametrize("way", ["psql", "upgrade", "offline"])


@ways
def test_schema_public_may_be_missing(way: str, empty_db: Database, db: Database, tmp_path: Path) -> None:
    with psycopg.connect(empty_db.dsn) as connection:
        connection.execute("drop schema public")
    install(empty_db, way, tmp_path)

    assert is_installed(empty_db)
    assert catalog(empty_db) == catalog(db)


ODD_SETTINGS = [
    "search_path to hostile, pg_catalog",
    "default_transaction_isolation to 'serializable'",
    "check_function_bodies to off",
    "client_min_messages to debug1",
    "datestyle to 'german'",
    "intervalstyle to 'sql_standard'",
    "timezone to 'Pacific/Chatham'",
    "bytea_output to 'escape'",
    "quote_all_identifiers to on",
]


@ways
@pytest.mark.parametrize("settings", [["search_path to ''"], ODD_SETTINGS], ids=["empty search_path", "odd settings"])
def test_settings_of_the_database_do_not_matter(
    way: str, settings: list[str], empty_db: Database, db: Database, tmp_path: Path
) -> None:
    with psycopg.connect(owner_dsn(empty_db)) as connection:
        connection.execute("create schema hostile")
        connection.execute(
            "create function hostile.format(text, variadic text[]) returns text language plpgsql"
            " as $$ begin raise 'hijacked'; end $$"
        )
        connection.execute(
            "create function hostile.hashtextextended(text, int) returns int language sql as 'select 1/0'"
        )
    for setting in settings:
        alter(empty_db, f"set {setting}")
    install(empty_db, way, tmp_path)
    alter(empty_db, "reset all")

    assert is_installed(empty_db)
    assert catalog(empty_db) == catalog(db)


@ways
def test_default_privileges_open_the_private_schema_to_nobody(way: str, empty_db: Database, tmp_path: Path) -> None:
    owner, reader = empty_db.create_role("creator"), empty_db.create_role("reader")
    with psycopg.connect(empty_db.dsn) as connection:
        connection.execute(f"grant create on database {empty_db.name} to {owner}")
        connection.execute(f"alter default privileges for role {owner} grant usage on schemas to {reader}, public")
    install(empty_db, way, tmp_path, user=owner)

    with psycopg.connect(empty_db.dsn) as connection:
        granted = connection.execute("select has_schema_privilege(%s, 'idem_private', 'USAGE')", [reader]).fetchone()
    assert granted == (False,)


@ways
def test_no_extension_is_needed(way: str, empty_db: Database, tmp_path: Path) -> None:
    install(empty_db, way, tmp_path)

    with psycopg.connect(empty_db.dsn) as connection:
        assert connection.execute("select extname from pg_extension").fetchall() == [("plpgsql",)]
    assert is_installed(empty_db)


def test_a_role_without_create_is_told_the_statement_that_helps(empty_db: Database) -> None:
    role = empty_db.create_role("newcomer")
    with pytest.raises(AssertionError, match=f"grant create on database {empty_db.name} to {role};"):
        empty_db.psql(migrate.resource("sql") / "install.sql", user=role)

    with psycopg.connect(empty_db.dsn, autocommit=True) as connection:
        connection.execute(f"grant create on database {empty_db.name} to {role}")
    migrate.upgrade(empty_db.dsn_of(role))

    assert migrate.current(empty_db.dsn) == migrate.head()


def test_another_role_may_not_mix_its_objects_with_the_owners(db: Database) -> None:
    before = catalog(db)
    with pytest.raises(Exception, match=f"schema idem_private belongs to role {db.owner}, not to {db.cluster.user}"):
        migrate.downgrade(db.dsn)
    assert catalog(db) == before


def test_a_private_schema_prepared_by_somebody_else_is_refused(empty_db: Database) -> None:
    with psycopg.connect(empty_db.dsn) as connection:
        connection.execute("create schema idem_private")
    with pytest.raises(Exception, match="schema idem_private belongs to role"):
        migrate.upgrade(owner_dsn(empty_db))
    assert migrate.current(empty_db.dsn) is None


@pytest.mark.parametrize("commit", [True, False])
def test_an_upgrade_on_a_given_connection_leaves_its_transaction_and_settings_alone(
    commit: bool, empty_db: Database
) -> None:
    engine = create_engine(uri(empty_db, "postgresql+psycopg"))
    with engine.connect() as connection:
        connection.execute(text("set search_path to public, idem"))
        connection.commit()
        connection.execute(text("set local lock_timeout to '7s'"))

        assert migrate.upgrade(connection) == [migrate.head()]

        assert connection.in_transaction()
        assert connection.scalar(text("show search_path")) == "public, idem"
        assert connection.scalar(text("show lock_timeout")) == "7s"
        if commit:
            connection.commit()
    engine.dispose()

    assert migrate.current(empty_db.dsn) == (migrate.head() if commit else None)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+asyncpg"])
def test_every_kind_of_uri_is_understood(scheme: str, db: Database) -> None:
    assert migrate.current(uri(db, scheme)) == migrate.head()


def test_libpq_forms_are_understood(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = tmp_path / "services"
    parameters = psycopg.conninfo.conninfo_to_dict(db.dsn)
    service.write_text("[here]\n" + "".join(f"{name}={value}\n" for name, value in parameters.items()))
    monkeypatch.setenv("PGSERVICEFILE", str(service))

    assert migrate.current("service=here") == migrate.head()
    assert migrate.current(psycopg.conninfo.make_conninfo(db.dsn)) == migrate.head()
    several = parameters | {"host": f"127.0.0.1,{parameters['host']}", "port": f"1,{parameters['port']}"}
    assert migrate.current(psycopg.conninfo.make_conninfo("", **several)) == migrate.head()


def test_the_environment_of_libpq_is_understood(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in db.environment.items():
        monkeypatch.setenv(name, value)

    assert migrate.current() == migrate.head()

"""The check at start: a client refuses a database that cannot serve it, and says what to run."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from pyidem import AccessMissing, DatabaseTooNew, DatabaseTooOld, Idem, NotInstalled, NotReady
from pyidem._readiness import compared
from tests.cli.support import pyidem
from tests.client.flavours import FLAVOURS, Client
from tests.support.database import OWNER, Database

Open = Callable[[str], Client]

KINDS = ("sync-pool", "async-asyncpg_engine")
DRIVERS = (*KINDS, "sync-factory", "async-sessionmaker")
"""One flavour for each way in which an error of the database comes."""


@pytest.fixture(params=KINDS)
def open_as(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open a client with a connection string."""
    with ExitStack() as cleanup:
        yield lambda dsn: Client(request.param, dsn, cleanup)


each_driver = pytest.mark.parametrize("open_as", DRIVERS, indirect=True)


def execute(database: Database, *statements: str) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as admin:
        for statement in statements:
            admin.execute(statement.encode())


def record_version(database: Database, version: str) -> None:
    execute(
        database,
        "create or replace function idem.version() returns text"
        f" language sql immutable security definer set search_path = pg_catalog, pg_temp as 'select ''{version}'''",
    )


def run_command(database: Database, error: NotReady) -> None:
    """Run what the message says, as the owner of pyidem."""
    assert str(error).endswith(f"Run: {error.command}")
    if error.command.startswith("pyidem "):
        done = pyidem(database, *error.command.split()[1:])
        assert done.returncode == 0, done.stderr
    else:
        with psycopg.connect(database.dsn_of(OWNER), autocommit=True) as owner:
            owner.execute(error.command.encode())


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_right_version_is_returned(flavour: str, client_db: Database) -> None:
    with ExitStack() as cleanup:
        assert Client(flavour, client_db.dsn, cleanup).check() == client_db.version()


@each_driver
def test_where_pyidem_is_not_installed_the_command_installs_it(open_as: Open, empty_db: Database) -> None:
    client = open_as(empty_db.dsn)
    with pytest.raises(NotInstalled, match=f"not installed in database {empty_db.name}") as refused:
        client.check()

    run_command(empty_db, refused.value)
    assert client.check() == empty_db.version()


def test_a_schema_of_somebody_else_is_no_installation(open_as: Open, empty_db: Database) -> None:
    execute(empty_db, "create schema idem")
    with pytest.raises(NotInstalled):
        open_as(empty_db.dsn).check()


def test_an_older_database_is_to_be_upgraded(open_as: Open, db: Database) -> None:
    record_version(db, "0.0.9")
    with pytest.raises(DatabaseTooOld, match=f"database {db.name} has pyidem 0.0.9, this client is") as refused:
        open_as(db.dsn).check()
    assert refused.value.command == f"pyidem upgrade --dsn dbname={db.name}"


def test_for_a_newer_database_the_client_is_to_be_upgraded(open_as: Open, db: Database) -> None:
    record_version(db, "7.3.1")
    with pytest.raises(DatabaseTooNew, match=f"database {db.name} has pyidem 7.3.1, this client is") as refused:
        open_as(db.dsn).check()
    assert refused.value.command == "pip install 'pyidem==7.3.*'"


@each_driver
@pytest.mark.parametrize("change", ["select idem.grant_monitor('{}')", "select"])
def test_a_role_without_the_right_is_told_the_grant_that_gives_it(change: str, open_as: Open, db: Database) -> None:
    role = db.create_role("no one's")
    execute(db, change.format(role.replace("'", "''")))
    client = open_as(db.dsn_of(role))
    with pytest.raises(AccessMissing, match=re.escape(f"role {role} may not call pyidem")) as refused:
        client.check()

    run_command(db, refused.value)
    assert client.check() == db.version()


def test_a_revoked_call_is_noticed(open_as: Open, db: Database) -> None:
    role = db.create_role("app")
    execute(db, f"select idem.grant_client('{role}')", f"revoke execute on function idem.reserve from {role}")
    with pytest.raises(AccessMissing):
        open_as(db.dsn_of(role)).check()


def test_a_resolver_needs_no_right_to_reserve(open_as: Open, db: Database) -> None:
    role = db.create_role("resolver")
    execute(db, f"select idem.grant_resolver('{role}')")
    assert open_as(db.dsn_of(role)).check() == db.version()


def test_a_database_that_cannot_be_reached_is_no_matter_of_its_version(db: Database) -> None:
    idem = Idem(lambda: psycopg.connect(db.dsn, port=1))
    with pytest.raises(psycopg.OperationalError):
        idem.check()


@pytest.mark.parametrize(
    ("installed", "client", "verdict"),
    [
        ("0.1.0.dev0", "0.1.0", 0),
        ("0.1.9", "0.1.0", 0),
        ("0.1.0", "0.1.9", 0),
        ("0.2.0", "0.1.0", 0),
        ("0.3.0", "0.1.0", 1),
        ("0.1.0", "0.2.0", -1),
        ("0.10.0", "0.9.0", 0),
        ("1.0.0", "0.9.0", 1),
        ("0.9.0", "1.0.0", -1),
        ("1.7.0", "1.2.0", 0),
        ("1.2.0", "1.7.0", -1),
        ("2.0.0", "1.7.0", 1),
        ("unknown", "0.1.0", -1),
    ],
)
def test_a_database_may_be_a_release_ahead(installed: str, client: str, verdict: int) -> None:
    assert compared(installed, client) == verdict


def test_a_call_says_by_itself_that_pyidem_is_not_installed(open_as: Open, empty_db: Database) -> None:
    client = open_as(empty_db.dsn)
    with pytest.raises(NotInstalled, match="Run: pyidem upgrade"), client.atomic("s", "k"):
        pass
    with pytest.raises(NotInstalled):
        client.lookup("s", "k")


@each_driver
def test_a_call_that_the_database_does_not_have_says_so(open_as: Open, db: Database) -> None:
    execute(db, "drop function idem.reserve")
    with pytest.raises(NotReady, match="another version of pyidem") as refused, open_as(db.dsn).atomic("s", "k"):
        pass
    assert refused.value.command == "pyidem doctor"


@each_driver
def test_an_unknown_function_within_a_handler_is_the_handlers_own(open_as: Open, db: Database) -> None:
    execute(
        db,
        "create function bad(args jsonb) returns idem.response language plpgsql as"
        " $$ begin perform no_such_function(); return null; end $$",
    )
    for handler in ("bad(jsonb)", "no_such_handler(jsonb)"):
        with pytest.raises(Exception, match="does not exist") as refused:
            open_as(db.dsn).run("s", "k", handler, {})
        assert not isinstance(refused.value, NotReady)


def test_a_refused_check_leaves_no_transaction_open(empty_db: Database) -> None:
    with psycopg.connect(empty_db.dsn) as connection:
        with pytest.raises(NotInstalled):
            Idem(connection).check()
        assert connection.info.transaction_status == TransactionStatus.IDLE

"""A database with a business table, and every flavour of the client on it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from pyidem.embedded import Cluster
from tests.client.flavours import FLAVOURS, Client, OpenClient
from tests.support.database import Database
from tests.support.pgbouncer import pgbouncer
from tests.support.surroundings import SURROUNDINGS, Surroundings, entrance, surrounded

# applications whose tests are run by test_testing.py
collect_ignore = ["sample_app", "sample_django"]

AROUND = SURROUNDINGS[os.environ["PYIDEM_SURROUNDINGS"]] if "PYIDEM_SURROUNDINGS" in os.environ else Surroundings()

# The table has a trigger that runs at COMMIT and lets a test stop there, by holding the lock.
_BUSINESS = """
    create table orders (id int generated always as identity primary key, name text not null);
    create table customers (id int primary key);
    create table invoices (customer int references customers deferrable initially deferred);
    create function stop_at_commit() returns trigger language plpgsql as
    $$begin perform pg_advisory_xact_lock_shared(4711); return null; end$$;
    create constraint trigger stop_at_commit after insert on orders deferrable initially deferred
    for each row execute function stop_at_commit();
"""


@pytest.fixture(scope="session")
def client_db(server: Cluster, template: str) -> Iterator[Database]:
    """A database for all client tests of a worker: each has a scope of its own. `make surroundings` names others."""
    with surrounded(server, template, AROUND) as database:
        database.enable_testing()
        with psycopg.connect(database.dsn) as connection:
            connection.execute(_BUSINESS)
        yield database


@pytest.fixture(scope="session")
def client_dsn(client_db: Database) -> Iterator[str]:
    """How the clients reach it."""
    with entrance(client_db, AROUND) as dsn:
        yield dsn


@pytest.fixture
def scope() -> str:
    """A scope that no other test uses."""
    return f"test-{uuid4()}"


@pytest.fixture
def open_client(client_dsn: str) -> Iterator[OpenClient]:
    """Open a flavour of the client by its name, with a pool of two connections unless told otherwise."""
    with ExitStack() as cleanup:
        yield lambda name, **options: Client(name, client_dsn, cleanup, **options)


@pytest.fixture(params=FLAVOURS)
def client(request: pytest.FixtureRequest, open_client: OpenClient) -> Client:
    """Every flavour of the client, one after the other."""
    return open_client(request.param)


@pytest.fixture
def observer(client_db: Database) -> Iterator[psycopg.Connection]:
    """A connection of the test's own, in autocommit mode."""
    with psycopg.connect(client_db.dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def orders(observer: psycopg.Connection) -> Callable[[str], int]:
    """A function that counts the committed orders of a name."""

    def count(name: str) -> int:
        row = observer.execute("select count(*) from orders where name = %s", [name]).fetchone()
        assert row is not None
        return int(row[0])

    return count


@pytest.fixture
def pooler(client_db: Database, tmp_path: Path) -> Iterator[str]:
    """The connection string of a PgBouncer in transaction mode with two server connections."""
    with pgbouncer(client_db.dsn, tmp_path, connections=2) as dsn:
        yield dsn

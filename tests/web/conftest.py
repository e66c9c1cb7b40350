"""Applications on real servers, on a database with a shop."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from pyidem.embedded import Cluster
from tests.support.database import Database, new_database
from tests.support.waiting import wait_until
from tests.web.servers import gunicorn, uvicorn

collect_ignore = ["apps"]

_SHOP = """
    create table orders (id int generated always as identity primary key, name text not null);
    insert into idem.policies (name, required) values ('required', true);
    insert into idem.policies (name, on_lapse) values ('retried', 'retry');
    insert into idem.policies (name, profile) values ('stripe', 'stripe');
"""


class Client(httpx.Client):
    """A client of a server, with the client's scope in each request."""

    def order(self, path: str, key: str | None, *, client: str | None = "client:1", **options: Any) -> httpx.Response:
        """Post a request."""
        headers = [("x-client", client)] if client is not None else []
        if key is not None:
            headers.append(("idempotency-key", key))
        headers.extend(options.pop("headers", []))
        return self.post(path, headers=headers, **options)


@pytest.fixture(scope="session")
def web_db(server: Cluster, template: str) -> Iterator[Database]:
    """A database for all the servers of a worker."""
    with new_database(server, template=template) as database:
        with psycopg.connect(database.dsn) as connection:
            connection.execute(_SHOP)
        yield database


@pytest.fixture(scope="session")
def serve(web_db: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """A function that starts a server, once for each application; all end with the session."""
    started: dict[tuple[Any, ...], str] = {}
    with ExitStack() as cleanup:

        def start(kind: str, app: str, **options: Any) -> str:
            known = (kind, app, *options.items())
            if known not in started:
                log = tmp_path_factory.mktemp("server") / "log"
                make = {"uvicorn": uvicorn, "gunicorn": gunicorn}[kind]
                started[known] = cleanup.enter_context(make(app, log, APP_DSN=web_db.dsn, **options))
            return started[known]

        yield start


@contextmanager
def client_on(address: str) -> Iterator[Client]:
    """Open a client, with as many connections as it wants."""
    limits = httpx.Limits(max_connections=None)
    with Client(base_url=address, timeout=60, limits=limits, trust_env=False) as client:
        yield client


@pytest.fixture
def observer(web_db: Database) -> Iterator[psycopg.Connection]:
    """A connection of the test's own, in autocommit mode."""
    with psycopg.connect(web_db.dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def name() -> str:
    """A name for orders that no other test uses; it is also good for a key."""
    return str(uuid4())


@pytest.fixture
def orders(observer: psycopg.Connection) -> Callable[[str], int]:
    """A function that counts the committed orders of a name."""

    def count(name: str) -> int:
        row = observer.execute("select count(*) from orders where name = %s", [name]).fetchone()
        assert row is not None
        return int(row[0])

    return count


class Gate:
    """Holds the handlers that come to it until it is opened."""

    def __init__(self, observer: psycopg.Connection, name: str) -> None:
        self._observer = observer
        self._name = name

    def waiting(self) -> int:
        """Count the handlers that wait."""
        row = self._observer.execute(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            " and ((classid::bigint << 32) | objid::bigint) = hashtextextended(%s, 0)",
            [self._name],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def wait_for(self, handlers: int = 1) -> None:
        """Return when so many handlers wait."""
        wait_until(lambda: self.waiting() >= handlers, f"{handlers} handlers at the gate")

    def open(self) -> None:
        """Let everybody through."""
        self._observer.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", [self._name])


@pytest.fixture
def gate(observer: psycopg.Connection, name: str) -> Iterator[Gate]:
    """A gate that is closed; it opens by itself at the end of the test."""
    observer.execute("select pg_advisory_lock(hashtextextended(%s, 0))", [name])
    gate = Gate(observer, name)
    yield gate
    observer.execute("select pg_advisory_unlock_all()")


@pytest.fixture
def log_of(tmp_path: Path) -> Path:
    """Where a server of the test's own writes its log."""
    return tmp_path / "server.log"

"""What an operation costs on the wire, read from libpq's own trace."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.pq import Trace

from pyidem import IdempotencyError, KeyInvalid, NotCompleted
from tests.client.flavours import ON_PSYCOPG, Client, OpenClient

Traced = Callable[[], AbstractContextManager["Wire"]]


class Wire:
    """The protocol messages of one connection while it was watched."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def watch(self, connection: psycopg.Connection | psycopg.AsyncConnection) -> Iterator[None]:
        """Trace the connection for the length of a block."""
        with self._path.open("w") as file:
            connection.pgconn.trace(file.fileno())
            connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
            yield
            connection.pgconn.untrace()

    def round_trips(self) -> int:
        """Count how often the client turned from listening to speaking."""
        directions = [line[0] for line in self._lines()]
        return sum(before == "B" and now == "F" for before, now in pairwise(["B", *directions]))

    def statements(self) -> list[str]:
        """Return the messages that carry the text of a statement, and a name if it was to be prepared."""
        return [line for line in self._lines() if line.split("\t")[2] in {"Parse", "Query"}]

    def _lines(self) -> list[str]:
        return [line for line in self._path.read_text().splitlines() if line.startswith(("F\t", "B\t"))]


@pytest.fixture(params=ON_PSYCOPG)
def client(request: pytest.FixtureRequest, open_client: OpenClient) -> Client:
    """Every flavour of the client on psycopg, always on the same connection."""
    return open_client(request.param, pool_size=1)


@pytest.fixture
def traced(client: Client, scope: str, tmp_path: Path) -> Callable[[], AbstractContextManager[Wire]]:
    """A function that watches the one connection that the client uses, which is warm."""

    @contextmanager
    def trace() -> Iterator[Wire]:
        with client.atomic(scope, "which connection") as op:
            connection = driver_connection(client, op.connection)
            op.complete()
        wire = Wire(tmp_path / "trace")
        with wire.watch(connection):
            yield wire

    return trace


def driver_connection(client: Client, handle: Any) -> psycopg.Connection | psycopg.AsyncConnection:
    """Return the psycopg connection below what `op.connection` is."""
    if isinstance(handle, psycopg.Connection | psycopg.AsyncConnection):
        return handle
    if hasattr(handle, "sync_session"):
        handle = client.finish(handle.connection())
    elif client.source == "sessionmaker":
        handle = handle.connection()
    raw = client.finish(handle.get_raw_connection()) if client.asynchronous else handle.connection
    connection = raw.driver_connection
    assert isinstance(connection, psycopg.Connection | psycopg.AsyncConnection)
    return connection


def test_an_atomic_operation_costs_no_more_than_the_same_work_without_it(
    client: Client, scope: str, traced: Traced
) -> None:
    with traced() as wire, client.atomic(scope, "k") as op:
        client.insert(op.connection, scope)
        op.complete(201)
    by_hand = len(["begin", "insert", "commit"])
    assert wire.round_trips() == by_hand


def test_a_replay_costs_two_round_trips(client: Client, scope: str, traced: Traced) -> None:
    with client.atomic(scope, "k") as op:
        op.complete(201)
    with traced() as wire, client.atomic(scope, "k") as op:
        assert not op.started
    assert wire.round_trips() == len(["begin and reserve", "commit"])


def test_a_leased_operation_reserves_and_commits_in_one_round_trip(client: Client, scope: str, traced: Traced) -> None:
    with traced() as wire, client.leased(scope, "k") as op, client.block(op.transaction) as connection:
        client.insert(connection, scope)
        op.complete(201)
    assert wire.round_trips() == len(["reserve", "begin", "insert", "complete", "commit"])


@pytest.mark.parametrize("function", ["version", "lookup", "downstream_key"])
def test_a_call_by_itself_costs_one_round_trip(client: Client, scope: str, traced: Traced, function: str) -> None:
    arguments = [] if function == "version" else [scope, "k"]
    with traced() as wire:
        getattr(client, function)(*arguments)
    assert wire.round_trips() == 1


def test_nothing_is_prepared_however_often_it_is_sent(client: Client, scope: str, traced: Traced) -> None:
    with traced() as wire:
        for number in range(12):
            with client.atomic(scope, f"k{number}") as op:
                op.complete(201)
    named = [statement for statement in wire.statements() if '"_pg3' in statement]
    assert wire.statements()
    assert named == []


def test_the_connection_is_given_back_in_the_mode_it_came_in(client: Client, scope: str) -> None:
    with client.atomic(scope, "k") as op:
        connection = driver_connection(client, op.connection)
        op.complete()
    assert connection.autocommit is False
    for function, arguments in (
        ("extend", [scope, "k", uuid4()]),
        ("reserve", [scope, ""]),
        ("reserve", [scope, "never completed"]),
    ):
        with pytest.raises(IdempotencyError):
            getattr(client, function)(*arguments)
        assert connection.autocommit is False
    with pytest.raises(KeyInvalid), client.atomic(scope, ""):
        pytest.fail("the block was entered")
    assert connection.autocommit is False
    with pytest.raises(NotCompleted), client.atomic(scope, "unfinished"):
        pass
    assert connection.autocommit is False
    with pytest.raises(ZeroDivisionError), client.leased(scope, "l") as leased, client.block(leased.transaction):
        raise ZeroDivisionError
    assert connection.autocommit is False


def test_without_pipelines_it_takes_longer_and_works(
    client: Client, scope: str, monkeypatch: pytest.MonkeyPatch, traced: Traced
) -> None:
    monkeypatch.setattr(psycopg.Pipeline, "is_supported", lambda: False)
    monkeypatch.setattr(psycopg.AsyncPipeline, "is_supported", lambda: False)
    with traced() as wire, client.atomic(scope, "k") as op:
        client.insert(op.connection, scope)
        op.complete(201)
    assert wire.round_trips() == len(["begin", "reserve", "insert", "complete", "commit"])
    assert client.lookup(scope, "k").outcome == "completed"

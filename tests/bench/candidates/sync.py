"""From synchronous Python, on one psycopg pool: the work alone, the pattern by hand, and pyidem."""

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from psycopg_pool import ConnectionPool

from pyidem import HttpCall, Idem
from tests.bench.candidates.shared import (
    ANSWER,
    BATCH,
    COMPLETE_BY_HAND,
    FINGERPRINT,
    HEADERS,
    READ_BY_HAND,
    RESERVE_BY_HAND,
    STORED_HEADERS,
    WORK,
    stored,
)

Operation = Callable[[str], object]


@cache
def _pool(dsn: str, clients: int) -> "_Shared":
    return _Shared(ConnectionPool(dsn, min_size=clients, max_size=clients, open=True))


class _Shared:
    """A pool for all candidates, which stays open: what it costs to connect is not measured."""

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self._pool = pool
        atexit.register(pool.close)

    def __enter__(self) -> ConnectionPool[Any]:
        self._pool.wait()
        return self._pool

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def work(dsn: str, clients: int) -> Iterator[Operation]:
    """The work alone in its transaction."""
    with _pool(dsn, clients) as pool:

        def operation(_: str) -> None:
            with pool.connection() as connection:
                connection.execute(WORK, [1, "benchmark"])

        yield operation


@contextmanager
def hand(dsn: str, clients: int) -> Iterator[Operation]:
    """Insert the key, do the work, update it with the answer; psycopg prepares all of it."""
    with _pool(dsn, clients) as pool:

        def operation(name: str) -> None:
            with pool.connection() as connection:
                new = connection.execute(RESERVE_BY_HAND, ["client", name, FINGERPRINT]).fetchone()
                assert new is not None
                connection.execute(WORK, [1, "benchmark"])
                connection.execute(COMPLETE_BY_HAND, [201, STORED_HEADERS, ANSWER, "client", name])

        yield operation


@contextmanager
def select(dsn: str, clients: int) -> Iterator[Operation]:
    """A replay by hand: one select by primary key."""
    with _pool(dsn, clients) as pool:

        def operation(name: str) -> None:
            with pool.connection() as connection:
                row = connection.execute(READ_BY_HAND, ["client", stored(name)]).fetchone()
                assert row is not None

        yield operation


@contextmanager
def insert(dsn: str, clients: int) -> Iterator[Operation]:
    """A message id by hand, with the work."""
    with _pool(dsn, clients) as pool:

        def operation(name: str) -> None:
            with pool.connection() as connection:
                connection.execute(
                    "insert into handled (scope, key) values (%s, %s) on conflict do nothing", ["consumer", name]
                )
                connection.execute(WORK, [1, "benchmark"])

        yield operation


@contextmanager
def atomic(dsn: str, clients: int) -> Iterator[Operation]:
    """An atomic block."""
    with _pool(dsn, clients) as pool:
        idem = Idem(pool)

        def operation(name: str) -> None:
            with idem.atomic("client", name, fingerprint=FINGERPRINT) as op:
                assert op.started
                op.connection.execute(WORK, [1, "benchmark"])
                op.complete(201, ANSWER, HEADERS)

        yield operation


@contextmanager
def http_reserve(dsn: str, clients: int) -> Iterator[Operation]:
    """An atomic block around a request."""
    with _pool(dsn, clients) as pool:
        idem = Idem(pool)

        def operation(name: str) -> None:
            call = HttpCall(f'"{name}"', "POST", "/orders", b'{"amount": 1}', "application/json")
            with idem.atomic("client", call) as op:
                assert op.started
                op.connection.execute(WORK, [1, "benchmark"])
                op.complete(201, ANSWER, HEADERS)

        yield operation


@contextmanager
def leased(dsn: str, clients: int) -> Iterator[Operation]:
    """A leased block, whose outside effect takes no time."""
    with _pool(dsn, clients) as pool:
        idem = Idem(pool)

        def operation(name: str) -> None:
            with idem.leased("client", name, fingerprint=FINGERPRINT) as op:
                assert op.started
                with op.transaction() as connection:
                    connection.execute(WORK, [1, "benchmark"])
                    op.complete(201, ANSWER, HEADERS)

        yield operation


@contextmanager
def run(dsn: str, clients: int) -> Iterator[Operation]:
    """A handler in the database."""
    with _pool(dsn, clients) as pool:
        idem = Idem(pool)

        def operation(name: str) -> None:
            assert idem.run("client", name, "pay(jsonb)", {"amount": 1}, fingerprint=FINGERPRINT).started

        yield operation


@contextmanager
def once(dsn: str, clients: int) -> Iterator[Operation]:
    """A message, with the work."""
    with _pool(dsn, clients) as pool:
        idem = Idem(pool)

        def operation(name: str) -> None:
            with pool.connection() as connection:
                assert idem.once("consumer", name, on=connection)
                connection.execute(WORK, [1, "benchmark"])

        yield operation


@contextmanager
def once_many(dsn: str, clients: int) -> Iterator[Operation]:
    """A batch of messages, without work."""
    with _pool(dsn, clients) as pool:
        idem = Idem(pool)

        def operation(name: str) -> None:
            with pool.connection() as connection:
                marks = idem.once_many("consumer", [f"{name}-{n}" for n in range(BATCH)], on=connection)
                assert len(marks) == BATCH

        yield operation


def _outcome(outcome: str, key: str | None, fingerprint: bytes) -> Callable[[str, int], Any]:
    @contextmanager
    def candidate(dsn: str, clients: int) -> Iterator[Operation]:
        with _pool(dsn, clients) as pool:
            idem = Idem(pool)

            def operation(name: str) -> None:
                with idem.atomic("client", key or stored(name), fingerprint=fingerprint) as op:
                    assert op.outcome == outcome

            yield operation

    return candidate


replay = _outcome("replay", None, FINGERPRINT)
mismatch = _outcome("mismatch", None, b"another request")
in_progress = _outcome("in_progress", "busy", FINGERPRINT)

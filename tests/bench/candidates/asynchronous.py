"""From asynchronous Python, on one psycopg pool: the work alone, the pattern by hand, and pyidem."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from psycopg_pool import AsyncConnectionPool

from pyidem import AsyncIdem, HttpCall
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

Operation = Callable[[str], Awaitable[object]]


@cache
def _pool(dsn: str, clients: int) -> "_Shared":
    return _Shared(AsyncConnectionPool(dsn, min_size=clients, max_size=clients, open=False))


class _Shared:
    """A pool for all candidates, which stays open: what it costs to connect is not measured."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool

    async def __aenter__(self) -> AsyncConnectionPool[Any]:
        await self._pool.open(wait=True)
        return self._pool

    async def __aexit__(self, *_: object) -> None:
        pass


@asynccontextmanager
async def work(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """The work alone in its transaction."""
    async with _pool(dsn, clients) as pool:

        async def operation(_: str) -> None:
            async with pool.connection() as connection:
                await connection.execute(WORK, [1, "benchmark"])

        yield operation


@asynccontextmanager
async def hand(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """Insert the key, do the work, update it with the answer; psycopg prepares all of it."""
    async with _pool(dsn, clients) as pool:

        async def operation(name: str) -> None:
            async with pool.connection() as connection:
                new = await (await connection.execute(RESERVE_BY_HAND, ["client", name, FINGERPRINT])).fetchone()
                assert new is not None
                await connection.execute(WORK, [1, "benchmark"])
                await connection.execute(COMPLETE_BY_HAND, [201, STORED_HEADERS, ANSWER, "client", name])

        yield operation


@asynccontextmanager
async def select(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """A replay by hand: one select by primary key."""
    async with _pool(dsn, clients) as pool:

        async def operation(name: str) -> None:
            async with pool.connection() as connection:
                row = await (await connection.execute(READ_BY_HAND, ["client", stored(name)])).fetchone()
                assert row is not None

        yield operation


@asynccontextmanager
async def insert(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """A message id by hand, with the work."""
    async with _pool(dsn, clients) as pool:

        async def operation(name: str) -> None:
            async with pool.connection() as connection:
                await connection.execute(
                    "insert into handled (scope, key) values (%s, %s) on conflict do nothing", ["consumer", name]
                )
                await connection.execute(WORK, [1, "benchmark"])

        yield operation


@asynccontextmanager
async def atomic(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """An atomic block."""
    async with _pool(dsn, clients) as pool:
        idem = AsyncIdem(pool)

        async def operation(name: str) -> None:
            async with idem.atomic("client", name, fingerprint=FINGERPRINT) as op:
                assert op.started
                await op.connection.execute(WORK, [1, "benchmark"])
                op.complete(201, ANSWER, HEADERS)

        yield operation


@asynccontextmanager
async def http_reserve(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """An atomic block around a request."""
    async with _pool(dsn, clients) as pool:
        idem = AsyncIdem(pool)

        async def operation(name: str) -> None:
            call = HttpCall(f'"{name}"', "POST", "/orders", b'{"amount": 1}', "application/json")
            async with idem.atomic("client", call) as op:
                assert op.started
                await op.connection.execute(WORK, [1, "benchmark"])
                op.complete(201, ANSWER, HEADERS)

        yield operation


@asynccontextmanager
async def leased(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """A leased block, whose outside effect takes no time."""
    async with _pool(dsn, clients) as pool:
        idem = AsyncIdem(pool)

        async def operation(name: str) -> None:
            async with idem.leased("client", name, fingerprint=FINGERPRINT) as op:
                assert op.started
                async with op.transaction() as connection:
                    await connection.execute(WORK, [1, "benchmark"])
                    op.complete(201, ANSWER, HEADERS)

        yield operation


@asynccontextmanager
async def run(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """A handler in the database."""
    async with _pool(dsn, clients) as pool:
        idem = AsyncIdem(pool)

        async def operation(name: str) -> None:
            reservation = await idem.run("client", name, "pay(jsonb)", {"amount": 1}, fingerprint=FINGERPRINT)
            assert reservation.started

        yield operation


@asynccontextmanager
async def once(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """A message, with the work."""
    async with _pool(dsn, clients) as pool:
        idem = AsyncIdem(pool)

        async def operation(name: str) -> None:
            async with pool.connection() as connection:
                assert await idem.once("consumer", name, on=connection)
                await connection.execute(WORK, [1, "benchmark"])

        yield operation


@asynccontextmanager
async def once_many(dsn: str, clients: int) -> AsyncIterator[Operation]:
    """A batch of messages, without work."""
    async with _pool(dsn, clients) as pool:
        idem = AsyncIdem(pool)

        async def operation(name: str) -> None:
            async with pool.connection() as connection:
                marks = await idem.once_many("consumer", [f"{name}-{n}" for n in range(BATCH)], on=connection)
                assert len(marks) == BATCH

        yield operation


def _outcome(outcome: str, key: str | None, fingerprint: bytes) -> Callable[[str, int], Any]:
    @asynccontextmanager
    async def candidate(dsn: str, clients: int) -> AsyncIterator[Operation]:
        async with _pool(dsn, clients) as pool:
            idem = AsyncIdem(pool)

            async def operation(name: str) -> None:
                async with idem.atomic("client", key or stored(name), fingerprint=fingerprint) as op:
                    assert op.outcome == outcome

            yield operation

    return candidate


replay = _outcome("replay", None, FINGERPRINT)
mismatch = _outcome("mismatch", None, b"another request")
in_progress = _outcome("in_progress", "busy", FINGERPRINT)

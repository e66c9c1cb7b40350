"""psycopg connections and pools.

Statements are never prepared and no session state is set, so that all this works through a pooler in transaction mode.
Pipeline mode puts BEGIN, a call and COMMIT into one round trip; a libpq before 14, which has none, takes one for each.
Cursors are made here and not by the connection, whose cursor and row factories are the application's own, and results
come in binary form, which DateStyle and IntervalStyle do not reach.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

from pyidem._calls import Call
from pyidem._errors import WrongMode

T = TypeVar("T")

_READ_COMMITTED = "set transaction isolation level read committed"


class PsycopgUnit:
    """One transaction on a psycopg connection.

    Its own transaction is psycopg's `Transaction`: the application's `connection.transaction()` nests in it, and a
    stray `connection.commit()` is refused. The connection is in autocommit mode meanwhile, for otherwise psycopg would
    spend a round trip on another BEGIN. Inside a transaction that is open already it is a savepoint. A joined
    transaction is the application's, and ended only on demand.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        *,
        joined: bool = False,
        give_back: Callable[[psycopg.Connection[Any]], None] | None = None,
    ) -> None:
        self.handle = connection
        self._joined = joined
        self._give_back = give_back
        self._nested = False
        self._autocommit_lent = False
        self._transaction: psycopg.Transaction | None = None

    def inside(self) -> bool:
        """Tell whether the connection is in a transaction."""
        return in_transaction(self.handle)

    def intact(self) -> bool:
        """Return True: psycopg lets nobody else end the transaction."""
        return True

    def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        if self._joined:
            refuse_autocommit(self.handle)
        self._take_over()
        with self._round_trip():
            self._open(read_committed=read_committed)
            cursor = self._send(call)
        return _read(call, cursor)

    def call(self, call: Call[T]) -> T:
        """Make a call."""
        return call.decode(self._send(call).fetchall())

    def commit(self, call: Call[T] | None = None) -> T | None:
        """Make a last call and commit."""
        with self._round_trip() as shared:
            cursor = self._send(call)
            early: T | None = None
            if not shared:  # it may say that nothing is to be committed
                early = _read(call, cursor)
            self._commit()
        self._hand_back()
        if shared:
            return _read(call, cursor)
        return early

    def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        self._take_over()
        with self._round_trip():
            self._open(read_committed=True)
            cursor = self._send(call)
            self._commit()
        self._hand_back()
        return call.decode(cursor.fetchall())

    def rollback(self) -> None:
        """Roll back, unless the connection is lost and the server has done so."""
        transaction, self._transaction = self._transaction, None
        if self.handle.closed:
            return
        if transaction is None:
            if not self._nested:
                self.handle.rollback()
        else:
            transaction.__exit__(psycopg.Rollback, psycopg.Rollback(), None)
        self._hand_back()

    def close(self) -> None:
        """Give the connection back to where it came from."""
        if self._give_back is not None:
            self._give_back(self.handle)

    @contextmanager
    def _round_trip(self) -> Iterator[bool]:
        """Send what is in the block at once, and tell whether that is possible."""
        if self._joined or self._nested or not psycopg.Pipeline.is_supported():
            yield False
        else:
            with _first_error(), self.handle.pipeline():
                yield True

    def _take_over(self) -> None:
        """Prepare the connection for a transaction that is begun here and not by its next statement."""
        if self._joined:
            return
        self._nested = in_transaction(self.handle)
        if not self._nested and not self.handle.autocommit:
            self.handle.autocommit = True
            self._autocommit_lent = True

    def _hand_back(self) -> None:
        if self._autocommit_lent:
            self.handle.autocommit = False
            self._autocommit_lent = False

    def _open(self, *, read_committed: bool) -> None:
        if self._joined:
            return
        self._transaction = psycopg.Transaction(self.handle)
        self._transaction.__enter__()
        if read_committed and not self._nested:
            self.handle.execute(_READ_COMMITTED, prepare=False)

    def _send(self, call: Call[Any] | None) -> psycopg.Cursor[dict[str, Any]]:
        cursor = psycopg.Cursor(self.handle, row_factory=dict_row)
        if call is not None:
            cursor.execute(call.sql.encode(), call.params, prepare=False, binary=True)
        return cursor

    def _commit(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            self.handle.commit()
        else:
            transaction.__exit__(None, None, None)


class AsyncPsycopgUnit:
    """The same on an asynchronous connection."""

    def __init__(
        self,
        connection: psycopg.AsyncConnection[Any],
        *,
        joined: bool = False,
        give_back: Callable[[psycopg.AsyncConnection[Any]], Awaitable[None]] | None = None,
    ) -> None:
        self.handle = connection
        self._joined = joined
        self._give_back = give_back
        self._nested = False
        self._autocommit_lent = False
        self._transaction: psycopg.AsyncTransaction | None = None

    async def inside(self) -> bool:
        """Tell whether the connection is in a transaction."""
        return in_transaction(self.handle)

    def intact(self) -> bool:
        """Return True: psycopg lets nobody else end the transaction."""
        return True

    async def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        if self._joined:
            refuse_autocommit(self.handle)
        await self._take_over()
        async with self._round_trip():
            await self._open(read_committed=read_committed)
            cursor = await self._send(call)
        return await _read_async(call, cursor)

    async def call(self, call: Call[T]) -> T:
        """Make a call."""
        cursor = await self._send(call)
        return call.decode(await cursor.fetchall())

    async def commit(self, call: Call[T] | None = None) -> T | None:
        """Make a last call and commit."""
        async with self._round_trip() as shared:
            cursor = await self._send(call)
            early: T | None = None
            if not shared:  # it may say that nothing is to be committed
                early = await _read_async(call, cursor)
            await self._commit()
        await self._hand_back()
        if shared:
            return await _read_async(call, cursor)
        return early

    async def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        await self._take_over()
        async with self._round_trip():
            await self._open(read_committed=True)
            cursor = await self._send(call)
            await self._commit()
        await self._hand_back()
        return call.decode(await cursor.fetchall())

    async def rollback(self) -> None:
        """Roll back, unless the connection is lost and the server has done so."""
        transaction, self._transaction = self._transaction, None
        if self.handle.closed:
            return
        if transaction is None:
            if not self._nested:
                await self.handle.rollback()
        else:
            await transaction.__aexit__(psycopg.Rollback, psycopg.Rollback(), None)
        await self._hand_back()

    async def close(self) -> None:
        """Give the connection back to where it came from."""
        if self._give_back is not None:
            await self._give_back(self.handle)

    @asynccontextmanager
    async def _round_trip(self) -> AsyncIterator[bool]:
        if self._joined or self._nested or not psycopg.AsyncPipeline.is_supported():
            yield False
        else:
            with _first_error():
                async with self.handle.pipeline():
                    yield True

    async def _take_over(self) -> None:
        """Prepare the connection for a transaction that is begun here and not by its next statement."""
        if self._joined:
            return
        self._nested = in_transaction(self.handle)
        if not self._nested and not self.handle.autocommit:
            await self.handle.set_autocommit(True)
            self._autocommit_lent = True

    async def _hand_back(self) -> None:
        if self._autocommit_lent:
            await self.handle.set_autocommit(False)
            self._autocommit_lent = False

    async def _open(self, *, read_committed: bool) -> None:
        if self._joined:
            return
        self._transaction = psycopg.AsyncTransaction(self.handle)
        await self._transaction.__aenter__()
        if read_committed and not self._nested:
            await self.handle.execute(_READ_COMMITTED, prepare=False)

    async def _send(self, call: Call[Any] | None) -> psycopg.AsyncCursor[dict[str, Any]]:
        cursor = psycopg.AsyncCursor(self.handle, row_factory=dict_row)
        if call is not None:
            await cursor.execute(call.sql.encode(), call.params, prepare=False, binary=True)
        return cursor

    async def _commit(self) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            await self.handle.commit()
        else:
            await transaction.__aexit__(None, None, None)


class ConnectionSource:
    """One connection that every unit uses in turn."""

    shared = False

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def open(self) -> PsycopgUnit:
        """Return a unit on the connection."""
        return PsycopgUnit(self._connection)

    def join(self) -> PsycopgUnit:
        """Return a unit in the connection's own transaction."""
        return PsycopgUnit(self._connection, joined=True)


class AsyncConnectionSource:
    """One asynchronous connection that every unit uses in turn."""

    shared = False

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def open(self) -> AsyncPsycopgUnit:
        """Return a unit on the connection."""
        return AsyncPsycopgUnit(self._connection)

    def join(self) -> AsyncPsycopgUnit:
        """Return a unit in the connection's own transaction."""
        return AsyncPsycopgUnit(self._connection, joined=True)


class PoolSource:
    """A `psycopg_pool.ConnectionPool`."""

    shared = True

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def open(self) -> PsycopgUnit:
        """Take a connection out of the pool."""
        return PsycopgUnit(self._pool.getconn(), give_back=self._pool.putconn)


class AsyncPoolSource:
    """A `psycopg_pool.AsyncConnectionPool`."""

    shared = True

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def open(self) -> AsyncPsycopgUnit:
        """Take a connection out of the pool."""
        return AsyncPsycopgUnit(await self._pool.getconn(), give_back=self._pool.putconn)


_AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]


def in_transaction(connection: _AnyConnection) -> bool:
    """Tell whether a transaction is open, from what the server said last; this asks nothing."""
    return connection.info.transaction_status != TransactionStatus.IDLE


def refuse_autocommit(connection: _AnyConnection) -> None:
    """Refuse to join a transaction that does not exist: each statement would commit by itself."""
    if connection.autocommit and not in_transaction(connection):
        raise WrongMode(
            "the connection is in autocommit mode and not in a transaction",
            hint="Open one with connection.transaction(), or leave out `on` and let the block own its transaction.",
        )


@contextmanager
def _first_error() -> Iterator[None]:
    """Raise what went wrong in a pipeline, not that the statements after it were skipped.

    Which of the two psycopg raises depends on how the server's answer is cut into packets.
    """
    try:
        yield
    except psycopg.errors.PipelineAborted as aborted:
        first = aborted.__context__
        if isinstance(first, psycopg.Error):
            raise first from None
        raise


def _read(call: Call[T] | None, cursor: psycopg.Cursor[dict[str, Any]]) -> T | None:
    return None if call is None else call.decode(cursor.fetchall())


async def _read_async(call: Call[T] | None, cursor: psycopg.AsyncCursor[dict[str, Any]]) -> T | None:
    return None if call is None else call.decode(await cursor.fetchall())

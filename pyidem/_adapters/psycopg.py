"""psycopg connections and pools.

Statements are never prepared and no session state is set, so that all this works through a pooler in transaction mode.
In a transaction of its own BEGIN and a call, or a call and COMMIT, are one round trip. Cursors are made here and not by
the connection, whose cursor and row factories are the application's own.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import dict_row

from pyidem._adapters.exchange import AnyConnection, Commands, exchange, is_read_whole, read_text, rows_of
from pyidem._calls import Call
from pyidem._errors import WrongMode

T = TypeVar("T")

_SAVEPOINT = b"savepoint pyidem"
_RELEASE = b"release savepoint pyidem"
_ROLLBACK_TO = b"rollback to savepoint pyidem"
_COMMIT = b"commit"
_ENDS = ("commit", "rollback")

BROKEN = (TransactionStatus.IDLE, TransactionStatus.INERROR)
"""The states of a connection whose transaction was ended or has failed."""


class Guard:
    """Refuses to have a transaction ended by the application, as psycopg does within a block of its own."""

    def __init__(self, connection: AnyConnection, refusal: Callable[[], Any]) -> None:
        self._attributes = vars(connection)
        self._refusal = refusal
        self._before: dict[str, Any] | None = None

    def set(self) -> None:
        """Refuse from now on, keeping what the application itself may have put in the place of the methods."""
        self._before = {end: self._attributes[end] for end in _ENDS if end in self._attributes}
        self._attributes.update(dict.fromkeys(_ENDS, self._refusal))

    def lift(self) -> None:
        """Leave the connection as it was; a guard that another unit has set stays."""
        if self._before is not None:
            for end in _ENDS:
                self._attributes.pop(end, None)
            self._attributes.update(self._before)
            self._before = None


class PsycopgUnit:
    """One transaction on a psycopg connection.

    One of its own is begun below psycopg, which sees from the server's answers that there is one: the application's
    `connection.transaction()` nests in it, autocommit mode is no matter, and a stray `commit()` or `rollback()` is
    refused. Inside a transaction that is open already it is a savepoint. A joined transaction is the application's, and
    ended only on demand.
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
        self._guard = Guard(connection, refuse_end)

    def inside(self) -> bool:
        """Tell whether the connection is in a transaction."""
        return in_transaction(self.handle)

    def intact(self) -> bool:
        """Tell whether the transaction is open, and no statement in it has failed."""
        return is_intact(self.handle)

    def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        if self._joined:
            refuse_autocommit(self.handle)
        elif self.inside():
            self._nested = True
            self._execute(_SAVEPOINT)
        else:
            answer = self._exchange((beginning(self.handle, read_committed=read_committed),), call)
            self._guard.set()
            return answer
        return None if call is None else self.call(call)

    def call(self, call: Call[T]) -> T:
        """Make a call."""
        cursor = psycopg.Cursor(self.handle, row_factory=dict_row)
        read_text(cursor)
        cursor.execute((call.whole or call.sql).encode(), call.params, prepare=False, binary=True)
        fetched = () if is_read_whole(cursor, call) else cursor.fetchall()
        return call.decode(rows_of(cursor, call, fetched))

    def commit(self, call: Call[T] | None = None) -> T | None:
        """Make a last call and commit."""
        if not self._joined and not self._nested:
            self._guard.lift()
            return self._exchange((), call, (_COMMIT,))
        answer = None if call is None else self.call(call)  # it may say that nothing is to be committed
        if self._nested:
            self._execute(_RELEASE)
            self._nested = False
        else:
            self.handle.commit()
        return answer

    def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        if not self.inside():
            return self._exchange((beginning(self.handle, read_committed=True),), call, (_COMMIT,))  # type: ignore[return-value]
        answer = self.begin(call)
        self.commit()
        return answer  # type: ignore[return-value]

    def rollback(self) -> None:
        """Roll back, unless the connection is lost and the server has done so."""
        self._guard.lift()
        if self.handle.closed:
            return
        if self._nested:
            self._execute(_ROLLBACK_TO)
            self._execute(_RELEASE)
            self._nested = False
        else:
            self.handle.rollback()

    def close(self) -> None:
        """Give the connection back to where it came from."""
        if self._give_back is not None:
            self._give_back(self.handle)

    def _exchange(self, before: Commands, call: Call[T] | None, after: Commands = ()) -> T | None:
        refuse_pipeline(self.handle)
        with self.handle.lock:
            rows = self.handle.wait(exchange(self.handle, before, call, after))
        return None if call is None else call.decode(rows)

    def _execute(self, command: bytes) -> None:
        psycopg.Cursor(self.handle).execute(command, prepare=False)


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
        self._guard = Guard(connection, _refuse_end_async)

    async def inside(self) -> bool:
        """Tell whether the connection is in a transaction."""
        return in_transaction(self.handle)

    def intact(self) -> bool:
        """Tell whether the transaction is open, and no statement in it has failed."""
        return is_intact(self.handle)

    async def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        if self._joined:
            refuse_autocommit(self.handle)
        elif in_transaction(self.handle):
            self._nested = True
            await self._execute(_SAVEPOINT)
        else:
            answer = await self._exchange((beginning(self.handle, read_committed=read_committed),), call)
            self._guard.set()
            return answer
        if call is None:
            return None
        return await self.call(call)

    async def call(self, call: Call[T]) -> T:
        """Make a call."""
        cursor = psycopg.AsyncCursor(self.handle, row_factory=dict_row)
        read_text(cursor)
        await cursor.execute((call.whole or call.sql).encode(), call.params, prepare=False, binary=True)
        fetched = () if is_read_whole(cursor, call) else await cursor.fetchall()
        return call.decode(rows_of(cursor, call, fetched))

    async def commit(self, call: Call[T] | None = None) -> T | None:
        """Make a last call and commit."""
        if not self._joined and not self._nested:
            self._guard.lift()
            return await self._exchange((), call, (_COMMIT,))
        answer = None
        if call is not None:
            answer = await self.call(call)  # it may say that nothing is to be committed
        if self._nested:
            await self._execute(_RELEASE)
            self._nested = False
        else:
            await self.handle.commit()
        return answer

    async def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        if not in_transaction(self.handle):
            return await self._exchange((beginning(self.handle, read_committed=True),), call, (_COMMIT,))  # type: ignore[return-value]
        answer = await self.begin(call)
        await self.commit()
        return answer  # type: ignore[return-value]

    async def rollback(self) -> None:
        """Roll back, unless the connection is lost and the server has done so."""
        self._guard.lift()
        if self.handle.closed:
            return
        if self._nested:
            await self._execute(_ROLLBACK_TO)
            await self._execute(_RELEASE)
            self._nested = False
        else:
            await self.handle.rollback()

    async def close(self) -> None:
        """Give the connection back to where it came from."""
        if self._give_back is not None:
            await self._give_back(self.handle)

    async def _exchange(self, before: Commands, call: Call[T] | None, after: Commands = ()) -> T | None:
        refuse_pipeline(self.handle)
        async with self.handle.lock:
            rows = await self.handle.wait(exchange(self.handle, before, call, after))
        return None if call is None else call.decode(rows)

    async def _execute(self, command: bytes) -> None:
        await psycopg.AsyncCursor(self.handle).execute(command, prepare=False)


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


def in_transaction(connection: AnyConnection) -> bool:
    """Tell whether a transaction is open, from what the server said last; this asks nothing."""
    return connection.info.transaction_status != TransactionStatus.IDLE


def is_intact(connection: AnyConnection) -> bool:
    """Tell whether a transaction is open and sound; where it is lost, or busy, the next statement tells more."""
    return connection.info.transaction_status not in BROKEN


def beginning(connection: AnyConnection, *, read_committed: bool) -> bytes:
    """Return what begins a transaction as the connection is set to begin its own, or in READ COMMITTED."""
    level = IsolationLevel.READ_COMMITTED if read_committed else connection.isolation_level
    parts = ["begin"]
    if level is not None:
        parts.append(f"isolation level {level.name.replace('_', ' ')}")
    if connection.read_only is not None:
        parts.append("read only" if connection.read_only else "read write")
    if connection.deferrable is not None:
        parts.append("deferrable" if connection.deferrable else "not deferrable")
    return " ".join(parts).encode()


def refuse_pipeline(connection: AnyConnection) -> None:
    """Refuse to begin or end a transaction among statements whose results are still to come."""
    if connection.pgconn.pipeline_status != PipelineStatus.OFF:
        raise WrongMode(
            "the connection is in pipeline mode",
            hint="Leave connection.pipeline() first; inside a block it may be used around the work.",
        )


def refuse_autocommit(connection: AnyConnection) -> None:
    """Refuse to join a transaction that does not exist: each statement would commit by itself."""
    if connection.autocommit and not in_transaction(connection):
        raise WrongMode(
            "the connection is in autocommit mode and not in a transaction",
            hint="Open one with connection.transaction(), or leave out `on` and let the block own its transaction.",
        )


def refuse_end() -> None:
    """Refuse to have the transaction of a block ended inside it."""
    raise WrongMode(
        "the transaction of this block was about to be ended inside it",
        hint="The block commits at its end, and rolls back if an exception leaves it. To end it yourself, join your own"
        " transaction: on=, commit=False.",
    )


async def _refuse_end_async() -> None:
    refuse_end()

"""SQLAlchemy's asynchronous engines, connections and sessions on psycopg or asyncpg."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker

from pyidem._adapters.sqlalchemy import SqlalchemyUnit, refuse_other_drivers
from pyidem._calls import Call

T = TypeVar("T")


class AsyncSqlalchemyUnit:
    """A `SqlalchemyUnit` on an asynchronous connection or session, run the way SQLAlchemy runs its own code."""

    def __init__(self, handle: AsyncConnection | AsyncSession, *, joined: bool = False, owned: bool = True) -> None:
        self.handle = handle
        below = handle.sync_session if isinstance(handle, AsyncSession) else _sync_connection(handle)
        self._unit = SqlalchemyUnit(below, joined=joined, owned=owned)

    async def inside(self) -> bool:
        """Tell whether SQLAlchemy was in a transaction before this unit came."""
        return self._unit.inside()

    def intact(self) -> bool | None:
        """Tell whether the application has not rolled back, and no statement has failed."""
        return self._unit.intact()

    async def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        return await self._run(lambda: self._unit.begin(call, read_committed=read_committed))

    async def call(self, call: Call[T]) -> T:
        """Make a call."""
        return await self._run(lambda: self._unit.call(call))

    async def commit(self, call: Call[T] | None = None) -> T | None:
        """Let SQLAlchemy commit, and make a last call as late as can be."""
        return await self._run(lambda: self._unit.commit(call))

    async def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        return await self._run(lambda: self._unit.once(call))

    async def rollback(self) -> None:
        """Let SQLAlchemy roll back."""
        await self._run(self._unit.rollback)

    async def close(self) -> None:
        """Close what was opened, and leave what was lent as it was."""
        await self._run(self._unit.close)

    async def _run(self, work: Callable[[], T]) -> T:
        return await self.handle.run_sync(lambda _: work())


class AsyncEngineSource:
    """An `AsyncEngine`: units are connections."""

    shared = True

    def __init__(self, engine: AsyncEngine) -> None:
        refuse_other_drivers(engine.dialect)
        self._engine = engine

    async def open(self) -> AsyncSqlalchemyUnit:
        """Connect."""
        return AsyncSqlalchemyUnit(await self._engine.connect())


class AsyncSessionSource:
    """An `async_sessionmaker`: units are sessions."""

    shared = True

    def __init__(self, factory: async_sessionmaker[Any]) -> None:
        self._factory = factory

    async def open(self) -> AsyncSqlalchemyUnit:
        """Make a session."""
        return AsyncSqlalchemyUnit(self._factory())


class AsyncLentSource:
    """An asynchronous connection or session of the application's that every unit uses in turn."""

    shared = False

    def __init__(self, handle: AsyncConnection | AsyncSession) -> None:
        self._handle = handle

    async def open(self) -> AsyncSqlalchemyUnit:
        """Return a unit on it."""
        return AsyncSqlalchemyUnit(self._handle, owned=False)

    def join(self) -> AsyncSqlalchemyUnit:
        """Return a unit in its own transaction."""
        return AsyncSqlalchemyUnit(self._handle, joined=True, owned=False)


def _sync_connection(handle: AsyncConnection) -> Connection:
    connection = handle.sync_connection
    assert connection is not None, "the connection is started"
    return connection

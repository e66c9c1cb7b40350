"""Every way to call the client, behind one synchronous face, so that a promise is written down once and kept by all.

A flavour is sync or async, on one of the kinds of source.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import psycopg
import psycopg2
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from pyidem import AsyncIdem, Idem

SOURCES = ("connection", "pool", "engine", "sessionmaker")
SYNC_SOURCES = (*SOURCES, "factory")
ASYNC_SOURCES = (*SOURCES, "asyncpg_engine", "asyncpg_sessionmaker")
FLAVOURS = (*(f"sync-{source}" for source in SYNC_SOURCES), *(f"async-{source}" for source in ASYNC_SOURCES))
ON_PSYCOPG = tuple(f"{flavour}-{source}" for flavour in ("sync", "async") for source in SOURCES)


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Client:
    """An `Idem` or `AsyncIdem` that is called synchronously either way."""

    def __init__(self, name: str, dsn: str, cleanup: ExitStack, pool_size: int = 2, options: str = "") -> None:
        flavour, self.source = name.split("-")
        self.asynchronous = flavour == "async"
        self.dsn = make_conninfo(dsn, options=options)
        self._pool_size = pool_size
        self._cleanup = cleanup
        self._loop = Loop()
        cleanup.callback(self._loop.close)
        self.origin: Any = self.finish(getattr(self, f"_open_{'async_' * self.asynchronous}{self.source}")())
        self.idem: Any = AsyncIdem(self.origin) if self.asynchronous else Idem(self.origin)

    @property
    def shared(self) -> bool:
        """Whether the source has more than one connection."""
        return self.source != "connection"

    def atomic(self, *args: Any, **options: Any) -> AbstractContextManager[Any]:
        """Open an atomic block."""
        return self.block(lambda: self.idem.atomic(*args, **options))

    def leased(self, *args: Any, **options: Any) -> AbstractContextManager[Any]:
        """Open a leased block."""
        return self.block(lambda: self.idem.leased(*args, **options))

    def __getattr__(self, function: str) -> Callable[..., Any]:
        """Return one of the methods that stand for a SQL function."""
        method = getattr(self.idem, function)
        return lambda *args, **options: self.finish(method(*args, **options))

    @contextmanager
    def block(self, make: Callable[[], Any]) -> Iterator[Any]:
        """Enter any of the client's context managers, made where the event loop runs."""
        block = self.finish(_made(make)) if self.asynchronous else make()
        with self._entered(block) as value:
            yield value

    def finish(self, result: Any) -> Any:
        """Await what an asynchronous method returned; a synchronous one's is the result."""
        return self._loop.run(result) if asyncio.iscoroutine(result) else result

    def execute(self, handle: Any, statement: str) -> list[Any]:
        """Run a statement on what `op.connection` is, and return its rows."""
        if self.source == "factory":
            with handle.cursor() as standard:
                standard.execute(statement)
                return standard.fetchall() if standard.description else []
        driver = isinstance(handle, psycopg.Connection | psycopg.AsyncConnection)
        cursor = self.finish(handle.execute(statement if driver else text(statement)))
        if not (cursor.description if driver else cursor.returns_rows):
            return []
        return [tuple(row) for row in self.finish(cursor.fetchall())]

    def insert(self, handle: Any, order: str) -> None:
        """Do the work of the tests: insert an order."""
        self.execute(handle, f"insert into orders (name) values ('{order}')")

    def lend(self) -> Any:
        """Return a connection or session of the application's own, not in a transaction."""
        match self.origin:
            case psycopg.Connection() | psycopg.AsyncConnection():
                return self.origin
            case ConnectionPool() | AsyncConnectionPool():
                return self.finish(getattr(self, f"_open_{'async_' * self.asynchronous}connection")())
            case Engine():
                lent = self.origin.connect()
            case partial():
                lent = self.origin()
            case AsyncEngine():
                lent = self.finish(_started(self.origin))
            case _:
                lent = self.origin()
        self._cleanup.callback(self._close, lent)
        return lent

    def _close(self, lent: Any) -> None:
        self.finish(lent.close())

    @contextmanager
    def _entered(self, block: Any) -> Iterator[Any]:
        if isinstance(block, AbstractAsyncContextManager) or hasattr(block, "__aenter__"):
            value = self._loop.run(block.__aenter__())
            try:
                yield value
            except BaseException as error:
                if not self._loop.run(block.__aexit__(type(error), error, error.__traceback__)):
                    raise
            else:
                self._loop.run(block.__aexit__(None, None, None))
        else:
            with block as value:
                yield value

    def _open_connection(self) -> psycopg.Connection:
        return self._cleanup.enter_context(psycopg.connect(self.dsn))

    def _open_pool(self) -> ConnectionPool:
        return self._cleanup.enter_context(ConnectionPool(self.dsn, min_size=1, max_size=self._pool_size, open=True))

    def _open_engine(self) -> Engine:
        engine = create_engine(
            "postgresql+psycopg://", connect_args=conninfo_to_dict(self.dsn), pool_size=self._pool_size, max_overflow=0
        )
        self._cleanup.callback(engine.dispose)
        return engine

    def _open_factory(self) -> partial[Any]:
        return partial(psycopg2.connect, self.dsn)

    def _open_sessionmaker(self) -> sessionmaker[Any]:
        return sessionmaker(self._open_engine())

    async def _open_async_connection(self) -> psycopg.AsyncConnection:
        connection = await psycopg.AsyncConnection.connect(self.dsn)
        self._cleanup.callback(lambda: self.finish(connection.close()))
        return connection

    async def _open_async_pool(self) -> AsyncConnectionPool:
        pool = AsyncConnectionPool(self.dsn, min_size=1, max_size=self._pool_size, open=False)
        await pool.open()
        self._cleanup.callback(lambda: self.finish(pool.close()))
        return pool

    async def _open_async_engine(self) -> AsyncEngine:
        engine = create_async_engine(
            "postgresql+psycopg://", connect_args=conninfo_to_dict(self.dsn), pool_size=self._pool_size, max_overflow=0
        )
        self._cleanup.callback(lambda: self.finish(engine.dispose()))
        return engine

    async def _open_async_asyncpg_engine(self) -> AsyncEngine:
        engine = create_async_engine(asyncpg_url(self.dsn), pool_size=self._pool_size, max_overflow=0)
        self._cleanup.callback(lambda: self.finish(engine.dispose()))
        return engine

    async def _open_async_asyncpg_sessionmaker(self) -> async_sessionmaker[Any]:
        return async_sessionmaker(await self._open_async_asyncpg_engine())

    async def _open_async_sessionmaker(self) -> async_sessionmaker[Any]:
        return async_sessionmaker(await self._open_async_engine())


OpenClient = Callable[..., Client]
"""What the fixture `open_client` is."""


def hide_failure_before_commit(session: Any) -> None:
    """Have a hook of SQLAlchemy's session fail in the last moment, and say nothing."""

    def hook(sync_session: Session) -> None:
        with suppress(DBAPIError):
            sync_session.execute(text("select 1 / 0"))

    event.listen(getattr(session, "sync_session", session), "before_commit", hook)


def asyncpg_url(dsn: str) -> URL:
    """Return SQLAlchemy's URL of a server for asyncpg."""
    server = conninfo_to_dict(dsn)
    return URL.create(
        "postgresql+asyncpg",
        str(server["user"]),
        str(server.get("password", "")),
        str(server["host"]),
        int(server["port"]),
        str(server["dbname"]),
    )


async def _made(make: Callable[[], Any]) -> Any:
    return make()


async def _started(engine: AsyncEngine) -> Any:
    return await engine.connect()

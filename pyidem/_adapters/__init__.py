"""What connects the flows to a driver.

A `Source` opens units. A `Unit` is a connection or session with one transaction, and knows in how few round trips that
can be begun, used and ended. Either comes in a sync and an async flavour with the same methods; which one it is matters
to `pyidem._drivers` alone.
"""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from pyidem._calls import Call


class Unit(Protocol):
    """One transaction. The methods do I/O: async, what they return is to be awaited."""

    handle: Any
    """What the application works with: a connection or a session."""

    def inside(self) -> Any:
        """Tell whether a transaction was open already."""

    def intact(self) -> bool | None:
        """Tell whether the transaction that was begun can still be committed, or None where the driver cannot tell.

        It cannot where the application has rolled back, or has hidden the error of a statement. No I/O.
        """

    def begin(self, call: Call[Any] | None = None, *, read_committed: bool = False) -> Any:
        """Begin, and make a call: one round trip."""

    def call(self, call: Call[Any]) -> Any:
        """Make a call in the open transaction: one round trip."""

    def commit(self, call: Call[Any] | None = None) -> Any:
        """Make a last call and commit: one round trip."""

    def once(self, call: Call[Any]) -> Any:
        """Make a call in a READ COMMITTED transaction that holds nothing else: one round trip."""

    def rollback(self) -> Any:
        """Undo the transaction, whatever state it is in."""

    def close(self) -> Any:
        """Give the connection or session back."""


class Source(Protocol):
    """Where units come from."""

    shared: bool
    """Whether another unit can be had while one is open: so with pools and engines, not with a single connection."""

    def open(self) -> Any:
        """Return a unit that is to own its transaction; this does I/O."""


class LentSource(Source, Protocol):
    """A connection or session of the application's."""

    def join(self) -> Unit:
        """Return a unit in the transaction that is, or is about to be, the application's own."""


def is_connection(value: Any) -> bool:
    """Tell whether this has what the DB-API wants of a connection; an asynchronous one has it under the same names."""
    methods = [getattr(value, name, None) for name in ("cursor", "commit", "rollback")]
    return all(callable(method) and not inspect.iscoroutinefunction(method) for method in methods)


def is_factory(value: Any) -> bool:
    """Tell whether this is a function, whatever it may return."""
    function = inspect.isroutine(value) or isinstance(value, partial)
    return function and not inspect.iscoroutinefunction(value)


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "a DB-API connection": is_connection,
    "a function that returns a DB-API connection": is_factory,
}

_Table = tuple[tuple[str, str, str], ...]
"""Module and name of a class, or the name of a shape, and the adapter for what is one."""

SOURCES: _Table = (
    ("psycopg", "Connection", "psycopg:ConnectionSource"),
    ("psycopg_pool", "ConnectionPool", "psycopg:PoolSource"),
    ("sqlalchemy", "Engine", "sqlalchemy:EngineSource"),
    ("sqlalchemy.orm", "sessionmaker", "sqlalchemy:SessionSource"),
    ("", "a function that returns a DB-API connection", "dbapi:FactorySource"),
)
ASYNC_SOURCES: _Table = (
    ("psycopg", "AsyncConnection", "psycopg:AsyncConnectionSource"),
    ("psycopg_pool", "AsyncConnectionPool", "psycopg:AsyncPoolSource"),
    ("sqlalchemy.ext.asyncio", "AsyncEngine", "sqlalchemy_async:AsyncEngineSource"),
    ("sqlalchemy.ext.asyncio", "async_sessionmaker", "sqlalchemy_async:AsyncSessionSource"),
)
LENT: _Table = (
    ("psycopg", "Connection", "psycopg:ConnectionSource"),
    ("sqlalchemy", "Connection", "sqlalchemy:LentSource"),
    ("sqlalchemy.orm", "Session", "sqlalchemy:LentSource"),
    ("", "a DB-API connection", "dbapi:LentSource"),
)
ASYNC_LENT: _Table = (
    ("psycopg", "AsyncConnection", "psycopg:AsyncConnectionSource"),
    ("sqlalchemy.ext.asyncio", "AsyncConnection", "sqlalchemy_async:AsyncLentSource"),
    ("sqlalchemy.ext.asyncio", "AsyncSession", "sqlalchemy_async:AsyncLentSource"),
)


def adapt(value: Any, table: _Table, what: str) -> Any:
    """Return the adapter for a value, or raise TypeError saying what `what` takes.

    Nothing is imported to find out: whoever has such an object has imported its class.
    """
    for module, name, adapter in table:
        if _fits(value, module, name):
            file, _, class_name = adapter.partition(":")
            return getattr(import_module(f"{__name__}.{file}"), class_name)(value)
    accepted = ", ".join(f"{module}.{name}".lstrip(".") for module, name, _ in table)
    given = f"{type(value).__module__}.{type(value).__qualname__}"
    raise TypeError(f"{what} takes one of {accepted}, with SQLAlchemy on psycopg or asyncpg; not {given}")


def _fits(value: Any, module: str, name: str) -> bool:
    if not module:
        return _SHAPES[name](value)
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))

"""SQLAlchemy engines, connections and sessions on psycopg or asyncpg.

SQLAlchemy begins and ends its own transaction, so that its state is right; pyidem's calls go to the driver's
connection below it. The completion rides on SQLAlchemy's own commit: a listener for that event sends it, on psycopg
together with COMMIT, after every flush and every hook of the application.

The asynchronous handles are in `sqlalchemy_async`, since importing those of SQLAlchemy needs greenlet.
"""

from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, Dialect, Engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import PoolProxiedConnection

from pyidem._adapters.asyncpg import AsyncpgLink
from pyidem._adapters.psycopg import AsyncPsycopgUnit, PsycopgUnit, in_transaction, refuse_end
from pyidem._calls import Call
from pyidem._errors import BY_SQLSTATE, sqlstate_of

T = TypeVar("T")

DRIVERS = {"psycopg", "psycopg_async", "asyncpg"}


class SqlalchemyUnit:
    """One transaction of a SQLAlchemy connection or session."""

    def __init__(self, handle: Connection | Session, *, joined: bool = False, owned: bool = True) -> None:
        self.handle = handle
        self._joined = joined
        self._owned = owned
        self._link: Any = None
        self._listens_to: Connection | None = None
        self._last_call: Call[Any] | None = None
        self._answer: Any = None
        self._ending = False
        self._rolled_back = False
        self._inside = _is_inside(handle)

    def inside(self) -> bool:
        """Tell whether SQLAlchemy was in a transaction before this unit came."""
        return self._inside

    def intact(self) -> bool | None:
        """Tell whether the application has not rolled back, and no statement has failed."""
        return not self._rolled_back and self._attach().intact()

    def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        link = self._attach(listen=True)
        return link.begin(call, read_committed=read_committed)  # type: ignore[no-any-return]

    def call(self, call: Call[T]) -> T:
        """Make a call."""
        return self._attach().call(call)  # type: ignore[no-any-return]

    def commit(self, call: Call[T] | None = None) -> T | None:
        """Let SQLAlchemy commit, and make a last call as late as can be."""
        if self._inside and not self._joined:
            return self._release(call)
        if self._joined:
            answer = None if call is None else self.call(call)
            self.handle.commit()
            return answer
        self._last_call, self._ending = call, True
        self.handle.commit()
        return self._answer  # type: ignore[no-any-return]

    def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        answer = self._attach().once(call)
        if self._owned and self._inside:
            self.handle.commit()
        return answer  # type: ignore[no-any-return]

    def rollback(self) -> None:
        """Let SQLAlchemy roll back."""
        self._ending = True
        if self._link is not None and not self._joined:
            self._link.rollback()
        if self._owned or self._joined or not self._inside:
            self.handle.rollback()

    def close(self) -> None:
        """Close what was opened, and leave what was lent as it was."""
        if self._listens_to is not None:
            event.remove(self._listens_to, "commit", self._on_commit)
            event.remove(self._listens_to, "rollback", self._on_rollback)
            self._listens_to = None
        if self._owned:
            self.handle.close()
        elif not self._joined and not self._inside:
            self.handle.rollback()

    def _attach(self, *, listen: bool = False) -> Any:
        """Have SQLAlchemy begin its transaction, and return the unit on the driver's connection below it."""
        if self._link is None:
            connection = self._begun()
            refuse_other_drivers(connection.dialect)
            self._link = _link(connection, joined=self._joined, inside=self._inside)
            if listen and not self._joined and not self._inside:
                event.listen(connection, "commit", self._on_commit)
                event.listen(connection, "rollback", self._on_rollback)
                self._listens_to = connection
        return self._link

    def _begun(self) -> Connection:
        if isinstance(self.handle, Session):
            return self.handle.connection()
        if not self.handle.in_transaction():
            self.handle.begin()
        return self.handle

    def _release(self, call: Call[T] | None) -> T | None:
        """End what is only a savepoint in a transaction that a test suite will roll back."""
        if isinstance(self.handle, Session):
            self.handle.flush()
        answer = self._attach().commit(call)
        if self._owned:
            self.handle.commit()
        return answer  # type: ignore[no-any-return]

    def _on_commit(self, connection: Connection) -> None:
        if not self._ending:
            refuse_end()
        try:
            self._answer = self._link.commit(self._last_call)
        except psycopg.Error as error:
            self._link.rollback()
            raise _as_sqlalchemy(error, connection) from error

    def _on_rollback(self, connection: Connection) -> None:  # noqa: ARG002 - the event's signature
        self._rolled_back = True
        self._link.rollback()


class EngineSource:
    """An `Engine`: units are connections."""

    shared = True

    def __init__(self, engine: Engine) -> None:
        refuse_other_drivers(engine.dialect)
        self._engine = engine

    def open(self) -> SqlalchemyUnit:
        """Connect."""
        return SqlalchemyUnit(self._engine.connect())


class SessionSource:
    """A `sessionmaker`: units are sessions."""

    shared = True

    def __init__(self, factory: sessionmaker[Any]) -> None:
        self._factory = factory

    def open(self) -> SqlalchemyUnit:
        """Make a session."""
        return SqlalchemyUnit(self._factory())


class LentSource:
    """A connection or session of the application's that every unit uses in turn."""

    shared = False

    def __init__(self, handle: Connection | Session) -> None:
        self._handle = handle

    def open(self) -> SqlalchemyUnit:
        """Return a unit on it."""
        return SqlalchemyUnit(self._handle, owned=False)

    def join(self) -> SqlalchemyUnit:
        """Return a unit in its own transaction."""
        return SqlalchemyUnit(self._handle, joined=True, owned=False)


class _GreenletLink:
    """A unit on an asynchronous driver's connection, for the sync code that SQLAlchemy runs in a greenlet."""

    def __init__(self, lent: PoolProxiedConnection, *, joined: bool) -> None:
        self._run = lent.dbapi_connection.run_async  # type: ignore[union-attr]
        self._unit = AsyncPsycopgUnit(lent.driver_connection, joined=joined)  # type: ignore[arg-type]

    def begin(self, call: Call[Any] | None, *, read_committed: bool) -> Any:
        return self._run(lambda _: self._unit.begin(call, read_committed=read_committed))

    def intact(self) -> bool:
        return self._unit.intact()

    def call(self, call: Call[Any]) -> Any:
        return self._run(lambda _: self._unit.call(call))

    def commit(self, call: Call[Any] | None) -> Any:
        return self._run(lambda _: self._unit.commit(call))

    def once(self, call: Call[Any]) -> Any:
        return self._run(lambda _: self._unit.once(call))

    def rollback(self) -> Any:
        return self._run(lambda _: self._unit.rollback())


def refuse_other_drivers(dialect: Dialect) -> None:
    """Refuse an engine on a driver that pyidem has no adapter for."""
    if dialect.driver not in DRIVERS:
        raise TypeError(
            "pyidem works with SQLAlchemy on psycopg (postgresql+psycopg://) or asyncpg (postgresql+asyncpg://),"
            f" not on {dialect.name}+{dialect.driver}"
        )


def _link(connection: Connection, *, joined: bool, inside: bool) -> PsycopgUnit | _GreenletLink | AsyncpgLink:
    """Return what makes the calls, in SQLAlchemy's transaction on this connection."""
    if connection.dialect.driver == "asyncpg":
        return AsyncpgLink(connection, nested=inside and not joined)
    lent = connection.connection
    # a hook of the application's may have spoken when SQLAlchemy began
    begun = in_transaction(lent.driver_connection)  # type: ignore[arg-type]
    joined = joined or (begun and not inside)
    if isinstance(lent.driver_connection, psycopg.Connection):
        return PsycopgUnit(lent.driver_connection, joined=joined)
    return _GreenletLink(lent, joined=joined)


def _is_inside(handle: Connection | Session) -> bool:
    """Tell whether a transaction is open: the handle's own, or that of the connection a session is bound to."""
    bound = handle.bind if isinstance(handle, Session) else None
    return handle.in_transaction() or (isinstance(bound, Connection) and bound.in_transaction())


def _as_sqlalchemy(error: psycopg.Error, connection: Connection) -> Exception:
    """Return the error as SQLAlchemy's own commit would have raised it, unless it is one of ours."""
    if sqlstate_of(error) in BY_SQLSTATE:
        return error
    dialect = connection.dialect
    wrapped = DBAPIError.instance(None, None, error, psycopg.Error, dialect=dialect)
    assert isinstance(wrapped, Exception)
    return wrapped

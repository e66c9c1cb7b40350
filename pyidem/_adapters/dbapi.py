"""Any DB-API connection with `%(name)s` parameters, such as psycopg2's, and a factory of connections.

This is what the standard has and no more: statements go one by one, and what drivers leave open is asked of the
connection where it says so. Connections of psycopg 3 and of Django have adapters of their own.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus

from pyidem._adapters import Unit, is_connection
from pyidem._adapters.django import DjangoUnit, is_django
from pyidem._adapters.psycopg import BROKEN, PsycopgUnit
from pyidem._calls import Call
from pyidem._errors import WrongMode

T = TypeVar("T")

_SAVEPOINT = "pyidem"


class DbapiUnit:
    """One transaction on a DB-API connection, which the application must not end inside the block."""

    def __init__(self, connection: Any, *, joined: bool = False, owned: bool = False) -> None:
        self.handle = connection
        self._joined = joined
        self._owned = owned
        self._nested = False
        self._autocommit_lent = False

    def inside(self) -> bool:
        """Tell whether the connection says that it is in a transaction."""
        return self._status() not in (None, TransactionStatus.IDLE)

    def intact(self) -> bool | None:
        """Tell whether a transaction is open and no statement has failed, where the connection says so."""
        status = self._status()
        return None if status is None else status not in BROKEN

    def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        if self._joined:
            self._refuse_autocommit()
        elif self.inside():
            self._nested = True
            self._execute(f"savepoint {_SAVEPOINT}")
        else:
            self._leave_autocommit()
            if read_committed:
                self._execute("set transaction isolation level read committed")
        return None if call is None else self.call(call)

    def call(self, call: Call[T]) -> T:
        """Make a call."""
        parameters = {name: str(value) if isinstance(value, UUID) else value for name, value in call.params.items()}
        cursor = self.handle.cursor()
        try:
            cursor.execute(call.sql, parameters)
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        finally:
            cursor.close()
        return call.decode(rows)

    def commit(self, call: Call[T] | None = None) -> T | None:
        """Make a last call and commit."""
        answer = None if call is None else self.call(call)
        if self._nested:
            self._execute(f"release savepoint {_SAVEPOINT}")
            self._nested = False
        else:
            self.handle.commit()
        self._restore_autocommit()
        return answer

    def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        answer = self.begin(call, read_committed=True)
        self.commit()
        return answer  # type: ignore[return-value]

    def rollback(self) -> None:
        """Roll back, unless the connection is closed and the server has done so."""
        if getattr(self.handle, "closed", False):
            return
        if self._nested:
            self._execute(f"rollback to savepoint {_SAVEPOINT}")
            self._nested = False
        else:
            self.handle.rollback()
        self._restore_autocommit()

    def close(self) -> None:
        """Close a connection that was made for this unit."""
        if self._owned:
            self.handle.close()

    def _status(self) -> int | None:
        """Return what libpq knows of the transaction, from drivers that are built on it."""
        status: int | None = getattr(getattr(self.handle, "info", None), "transaction_status", None)
        return status

    def _execute(self, statement: str) -> None:
        cursor = self.handle.cursor()
        try:
            cursor.execute(statement)
        finally:
            cursor.close()

    def _refuse_autocommit(self) -> None:
        if getattr(self.handle, "autocommit", False) and not self.inside():
            raise WrongMode(
                "the connection is in autocommit mode and not in a transaction",
                hint="Leave autocommit mode, or leave out `on` and let the block own its transaction.",
            )

    def _leave_autocommit(self) -> None:
        if getattr(self.handle, "autocommit", False):
            self.handle.autocommit = False
            self._autocommit_lent = True

    def _restore_autocommit(self) -> None:
        if self._autocommit_lent:
            self.handle.autocommit = True
            self._autocommit_lent = False


class FactorySource:
    """A callable that returns a connection: a new one, closed after use, or Django's, which Django closes."""

    shared = True

    def __init__(self, factory: Callable[[], Any]) -> None:
        self._factory = factory

    def open(self) -> Unit:
        """Make a connection."""
        connection = self._factory()
        if is_django(connection):
            return DjangoUnit(connection)
        if isinstance(connection, psycopg.Connection):
            return PsycopgUnit(connection, give_back=psycopg.Connection.close)
        if is_connection(connection):
            return DbapiUnit(connection, owned=True)
        raise TypeError(f"the factory must return DB-API connections, not {type(connection).__qualname__}")


class LentSource:
    """A connection of the application's, Django's or any, that every unit uses in turn."""

    shared = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def open(self) -> Unit:
        """Return a unit on it."""
        return self._unit(joined=False)

    def join(self) -> Unit:
        """Return a unit in its own transaction."""
        return self._unit(joined=True)

    def _unit(self, *, joined: bool) -> Unit:
        kind = DjangoUnit if is_django(self._connection) else DbapiUnit
        return kind(self._connection, joined=joined)

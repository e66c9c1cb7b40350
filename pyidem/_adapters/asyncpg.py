"""asyncpg below SQLAlchemy.

SQLAlchemy keeps the state of the transaction and of prepared statements there, and its documented settings for a pooler
act on them, so that calls go through SQLAlchemy's connection: with numbered parameters, one round trip each.
"""

from typing import TypeVar

from sqlalchemy import Connection

from pyidem._calls import Call
from pyidem._errors import WrongMode

T = TypeVar("T")

_SAVEPOINT = "pyidem"


class AsyncpgLink:
    """A transaction of SQLAlchemy's own, or `nested` a savepoint in one that is open already."""

    def __init__(self, connection: Connection, *, nested: bool) -> None:
        self._connection = connection
        self._nested = nested
        self._open = False
        if connection.connection.dbapi_connection.autocommit:  # type: ignore[union-attr]
            raise WrongMode(
                "the connection is in autocommit mode, in which asyncpg has no transactions",
                hint="Give Idem an engine that is not in AUTOCOMMIT: engine.execution_options(isolation_level=...).",
            )

    def begin(self, call: Call[T] | None, *, read_committed: bool) -> T | None:
        """Begin and make a call."""
        if self._nested:
            self._connection.exec_driver_sql(f"savepoint {_SAVEPOINT}")
            self._open = True
        elif read_committed:
            self._connection.exec_driver_sql("set transaction isolation level read committed")
        return None if call is None else self.call(call)

    def intact(self) -> None:
        """Return None: asyncpg does not say whether a statement has failed."""

    def call(self, call: Call[T]) -> T:
        """Make a call."""
        statement, parameters = call.numbered()
        result = self._connection.exec_driver_sql(statement, parameters)
        names = tuple(result.keys())
        return call.decode([dict(zip(names, row, strict=True)) for row in result])

    def commit(self, call: Call[T] | None) -> T | None:
        """Make a last call; the COMMIT that follows is SQLAlchemy's."""
        answer = None if call is None else self.call(call)
        if self._open:
            self._connection.exec_driver_sql(f"release savepoint {_SAVEPOINT}")
            self._open = False
        return answer

    def once(self, call: Call[T]) -> T:
        """Make a call and commit it."""
        answer = self.begin(call, read_committed=True)
        self.commit(None)
        if not self._nested:
            self._connection.connection.commit()
        return answer  # type: ignore[return-value]

    def rollback(self) -> None:
        """Roll back to the savepoint; a whole transaction is SQLAlchemy's to roll back."""
        if self._open:
            self._connection.exec_driver_sql(f"rollback to savepoint {_SAVEPOINT}")
            self._open = False

"""Django's connection, `django.db.connection` or one of `django.db.connections`.

Transactions are `transaction.atomic()`, so that Django's state is right, its savepoints nest inside and its `on_commit`
hooks run. The calls go to the psycopg connection below, whose results depend on no setting of Django.
"""

import threading
from importlib import import_module
from typing import Any, TypeVar

from pyidem._adapters.psycopg import PsycopgUnit, is_intact
from pyidem._calls import Call
from pyidem._errors import WrongMode

T = TypeVar("T")

_OWN_THREADS = "pyidem-"
_READ_COMMITTED = "set transaction isolation level read committed"


def is_django(connection: Any) -> bool:
    """Tell whether this is Django's, or the proxy that stands for that of the present thread."""
    return hasattr(connection, "in_atomic_block") and hasattr(connection, "ensure_connection")


class DjangoUnit:
    """One transaction of a Django connection; inside another one, a savepoint."""

    def __init__(self, connection: Any, *, joined: bool = False) -> None:
        self.handle = connection
        self._joined = joined
        self._was_closed = connection.connection is None
        self._atomic: Any = None

    def inside(self) -> bool:
        """Tell whether a transaction is open, or every statement would open one."""
        return bool(self.handle.in_atomic_block or not self.handle.get_autocommit())

    def intact(self) -> bool:
        """Tell whether Django is not going to roll back, whatever is asked of it, and no statement has failed."""
        return not self.handle.needs_rollback and is_intact(self.handle.connection)

    def begin(self, call: Call[T] | None = None, *, read_committed: bool = False) -> T | None:
        """Begin and make a call."""
        if self._joined:
            self._refuse_autocommit()
        else:
            nested = self.inside()
            self._atomic = import_module("django.db.transaction").atomic(using=self.handle.alias)
            self._atomic.__enter__()
            if read_committed and not nested:
                with self.handle.wrap_database_errors:
                    self.handle.connection.execute(_READ_COMMITTED)
        return None if call is None else self.call(call)

    def call(self, call: Call[T]) -> T:
        """Make a call."""
        self.handle.ensure_connection()
        self.handle.validate_no_broken_transaction()
        with self.handle.wrap_database_errors:
            return PsycopgUnit(self.handle.connection, joined=True).call(call)

    def commit(self, call: Call[T] | None = None) -> T | None:
        """Make a last call and commit."""
        answer = None if call is None else self.call(call)
        atomic, self._atomic = self._atomic, None
        if atomic is None:
            self.handle.commit()
        else:
            atomic.__exit__(None, None, None)
        return answer

    def once(self, call: Call[T]) -> T:
        """Make a call in a transaction of its own."""
        answer = self.begin(call, read_committed=True)
        self.commit()
        return answer  # type: ignore[return-value]

    def rollback(self) -> None:
        """Roll back."""
        atomic, self._atomic = self._atomic, None
        if atomic is not None:
            atomic.__exit__(_RolledBack, _RolledBack(), None)
        elif self._joined:
            self.handle.rollback()

    def close(self) -> None:
        """Close the connection in a thread of pyidem's own, where Django would not do so after a request."""
        if self._was_closed and not self._joined and threading.current_thread().name.startswith(_OWN_THREADS):
            self.handle.close()

    def _refuse_autocommit(self) -> None:
        if not self.inside():
            raise WrongMode(
                "the connection is in autocommit mode and not in a transaction",
                hint="Open one with transaction.atomic(), or leave out `on` and let the block own its transaction.",
            )


class _RolledBack(Exception):
    """What Django's atomic() is told, so that it rolls back."""

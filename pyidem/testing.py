"""What the tests of an application need: rollback after each test, a clock that moves, leases that lapse.

For pytest, in the root conftest.py:

    pytest_plugins = ["pyidem.testing"]

    @pytest.fixture(scope="session")
    def idem_dsn():
        return "dbname=app_test"

and then `idem_connection`, `idem_clock` and `idem_lapse` are there. Other test frameworks, SQLAlchemy, Django and
asyncio use the functions and classes, which take any connection that `on=` takes. It all works only in a database where
its owner has called `idem.enable_testing()`, which must hold nothing of value.

A conftest.py may import this before pytest does; there are no assertions to rewrite. PYTEST_DONT_REWRITE
"""

from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from pyidem import _calls
from pyidem._adapters import ASYNC_LENT, LENT, LentSource, adapt
from pyidem._calls import Call
from pyidem._drivers import Flow, run, run_async
from pyidem._transactions import joined_call, single_call

__all__ = [
    "AsyncClock",
    "Clock",
    "enable_testing",
    "idem_clock",
    "idem_connection",
    "idem_dsn",
    "idem_lapse",
    "idem_testing",
    "single_transaction",
    "single_transaction_async",
]

_OFFSET = "idem.clock_offset"
_JUST_AFTER = timedelta(milliseconds=1)


def enable_testing(connection: Any) -> None:
    """Let the connection's database honour what is done here. Only its owner may.

    Commits, unless the connection is in a transaction.
    """
    run(_made(_lent(connection), _calls.enable_testing()))


def single_transaction(connection: Any) -> None:
    """Let leased mode work inside this connection's transaction, which the test rolls back in the end.

    Begins the transaction where there is none yet. Clients on this connection then work in savepoints.
    """
    run(_single(_lent(connection)))


async def single_transaction_async(connection: Any) -> None:
    """Do the same for an asynchronous connection or session."""
    await run_async(_single(_lent_async(connection)))


class _Clock:
    """The offset of the clock, and the connections that see it."""

    def __init__(self) -> None:
        self.offset = timedelta(0)
        self._sources: list[LentSource] = []
        self._sessions: list[tuple[Any, LentSource]] = []
        """Whose own setting is changed, and not only that of a transaction."""

    def _watch(self, connection: Any, source: LentSource) -> Flow[None]:
        self._sources.append(source)
        if not (yield from _is_inside(source)):
            self._sessions.append((connection, source))
        if self.offset:
            yield from self._tell(source)

    def _advance(self, by: timedelta) -> Flow[None]:
        self.offset += by
        for source in self._sources:
            yield from self._tell(source)

    def _lapse(self, scope: str, key: str) -> Flow[None]:
        if not self._sources:
            raise RuntimeError("no connection is under test: name it with on(connection)")
        found = yield from _made(self._sources[0], _calls.lookup(scope, key))
        if found.outcome == "lapsed":
            return
        if found.outcome != "in_progress" or found.lease_until is None:
            raise ValueError(f"there is no lease that could lapse: the key is {found.outcome}")
        # in UTC, where a change of the clocks of the session's zone plays no part
        now = (yield from _made(self._sources[0], _calls.now())).astimezone(UTC) + self.offset
        yield from self._advance(found.lease_until.astimezone(UTC) - now + _JUST_AFTER)

    def _reset(self) -> Flow[None]:
        """Set the clocks of sessions right; those of transactions are, once they are rolled back."""
        self.offset = timedelta(0)
        for connection, source in self._sessions:
            if not getattr(connection, "closed", False):
                yield from _made(source, _calls.setting(_OFFSET, "", local=False))
        self._sources.clear()
        self._sessions.clear()

    def _tell(self, source: LentSource) -> Flow[None]:
        local = all(source is not known for _, known in self._sessions)
        offset = f"{self.offset // timedelta(microseconds=1)} microseconds"
        yield from _made(source, _calls.setting(_OFFSET, offset, local=local))


class Clock(_Clock):
    """The database's clock, as the connections under test see it; it moves when it is told to.

    For a connection that is in a transaction when it is named, the clock is moved until that ends; for any other, until
    `reset`.
    """

    def on(self, connection: Any) -> None:
        """Have this connection see the clock as well, from now on."""
        run(self._watch(connection, _lent(connection)))

    def advance(self, by: timedelta) -> None:
        """Let so much time pass: leases end, keys expire."""
        run(self._advance(by))

    def lapse(self, scope: str, key: str) -> None:
        """Let time pass until the lease of this key is over, as if its owner had died."""
        run(self._lapse(scope, key))

    def reset(self) -> None:
        """Set the clock right and let go of the connections."""
        run(self._reset())


class AsyncClock(_Clock):
    """The same for asynchronous connections and sessions."""

    async def on(self, connection: Any) -> None:
        """Have this connection see the clock as well, from now on."""
        await run_async(self._watch(connection, _lent_async(connection)))

    async def advance(self, by: timedelta) -> None:
        """Let so much time pass: leases end, keys expire."""
        await run_async(self._advance(by))

    async def lapse(self, scope: str, key: str) -> None:
        """Let time pass until the lease of this key is over, as if its owner had died."""
        await run_async(self._lapse(scope, key))

    async def reset(self) -> None:
        """Set the clock right and let go of the connections."""
        await run_async(self._reset())


@pytest.fixture(scope="session")
def idem_dsn() -> str:
    """The connection string of the application's test database, for its owner; the application says what it is."""
    raise pytest.UsageError(
        "define a session fixture idem_dsn in conftest.py that returns the connection string of the test database"
    )


@pytest.fixture(scope="session")
def idem_testing(idem_dsn: str) -> None:
    """Enable testing in the application's test database, where it stays enabled."""
    with psycopg.connect(idem_dsn) as connection:
        enable_testing(connection)


@pytest.fixture
def idem_clock(idem_testing: None) -> Iterator[Clock]:  # noqa: ARG001 - it is to be enabled
    """The clock of `idem_connection`, and of every other connection given to its `on`."""
    clock = Clock()
    yield clock
    clock.reset()


@pytest.fixture
def idem_connection(idem_dsn: str, idem_clock: Clock) -> Iterator["psycopg.Connection[Any]"]:
    """A connection for `Idem`, all of whose work is rolled back after the test."""
    with psycopg.connect(idem_dsn) as connection:
        single_transaction(connection)
        idem_clock.on(connection)
        yield connection
        connection.rollback()


@pytest.fixture
def idem_lapse(idem_clock: Clock) -> Callable[[str, str], None]:
    """A function of scope and key that lets a lease lapse, as if its owner had died."""
    return idem_clock.lapse


def _lent(connection: Any) -> LentSource:
    source: LentSource = adapt(connection, LENT, "this")
    return source


def _lent_async(connection: Any) -> LentSource:
    source: LentSource = adapt(connection, ASYNC_LENT, "this")
    return source


def _single(source: LentSource) -> Flow[None]:
    yield partial(source.join().begin, _calls.setting("idem.single_transaction", "on", local=True))


def _made(source: LentSource, call: Call[Any]) -> Flow[Any]:
    """Make a call in the open transaction, or in one of its own."""
    if (yield from _is_inside(source)):
        return (yield from joined_call(source.join(), call))
    return (yield from single_call(source, call))


def _is_inside(source: LentSource) -> Flow[bool]:
    unit = yield source.open
    try:
        return (yield unit.inside)  # type: ignore[no-any-return]
    finally:
        yield unit.close

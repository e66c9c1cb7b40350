"""The leased protocol as its clients run it, statement by statement, and deaths at any of them.

A protocol is a generator that yields the statements, each for the shop's database or for the provider's, and is sent
their answers. `Client` runs one, up to the statement at which it is to die.
"""

import os
import signal
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import namedtuple_row

SCOPE = "shop"

SHOP = """
create table booking (order_id text not null, step text not null);
insert into idem.policies (name, on_lapse, max_claims) values ('again', 'retry', 1000), ('ask', 'hold', 1000);
"""

# The provider performs each effect once for a key that it is given, or, if it knows no keys, whenever it is told to.
PROVIDER = """
create table effect (order_id text not null, step text not null, key uuid not null, once uuid unique);
"""


class Statement(NamedTuple):
    """What a protocol yields."""

    database: str
    sql: str
    arguments: tuple[Any, ...] = ()


Protocol = Generator[Statement, Any, str]


def shop(sql: str, *arguments: Any) -> Statement:
    """A statement for the database that has pyidem."""
    return Statement("shop", sql, arguments)


def act(order: str, step: str, key: Any, *, knows_keys: bool) -> Statement:
    """Have the provider do something that cannot be rolled back."""
    return Statement(
        "provider",
        "insert into effect values (%s, %s, %s, %s) on conflict (once) do nothing",
        (order, step, key, key if knows_keys else None),
    )


def one_step(order: str, policy: str, *, knows_keys: bool) -> Protocol:
    """Reserve; charge; book and complete."""
    yield shop("begin")
    answer = yield shop(
        "select outcome, token, downstream_key from idem.reserve(%s, %s, mode => 'leased', policy => %s)",
        SCOPE,
        order,
        policy,
    )
    yield shop("commit")
    if answer.outcome != "started":
        return str(answer.outcome)
    yield act(order, "charge", answer.downstream_key, knows_keys=knows_keys)
    return (yield from _finish(order, answer.token, "charge"))


def two_steps(order: str, policy: str, *, knows_keys: bool) -> Protocol:
    """Reserve; charge; book and record the step; mail; book and complete."""
    yield shop("begin")
    answer = yield shop(
        "select outcome, token, downstream_key, recovery_point"
        " from idem.reserve(%s, %s, mode => 'leased', policy => %s)",
        SCOPE,
        order,
        policy,
    )
    yield shop("commit")
    if answer.outcome != "started":
        return str(answer.outcome)
    if answer.recovery_point is None:
        yield act(order, "charge", answer.downstream_key, knows_keys=knows_keys)
        yield shop("begin")
        yield shop("insert into booking values (%s, 'charge')", order)
        recorded = yield shop("select idem.checkpoint(%s, %s, %s, 'charged')", SCOPE, order, answer.token)
        yield shop("commit" if recorded[0] else "rollback")
    mail = yield shop("select idem.downstream_key(%s, %s, 'mail')", SCOPE, order)
    yield act(order, "mail", mail[0], knows_keys=knows_keys)
    return (yield from _finish(order, answer.token, "mail"))


def sweep(policy: str) -> Protocol:
    """Claim one; ask the provider; book and complete, or release."""
    yield shop("begin")
    claim = yield shop("select scope, key, token, downstream_key from idem.claim_lapsed(1, policy => %s)", policy)
    yield shop("commit")
    if claim is None:
        return "nothing"
    found = yield Statement("provider", "select true from effect where key = %s", (claim.downstream_key,))
    if found is not None:
        return (yield from _finish(claim.key, claim.token, "charge"))
    yield shop("begin")
    yield shop("select idem.release(%s, %s, %s)", SCOPE, claim.key, claim.token)
    yield shop("commit")
    return "released"


def _finish(order: str, token: Any, step: str) -> Protocol:
    yield shop("begin")
    yield shop("insert into booking values (%s, %s)", order, step)
    completed = yield shop("select idem.complete(%s, %s, %s, 201)", SCOPE, order, token)
    yield shop("commit" if completed[0] else "rollback")
    return "completed"


PROTOCOLS = {"one_step": one_step, "two_steps": two_steps, "sweep": sweep}


# Deaths

KILLED = "the client is killed"
TERMINATED = "the backend is terminated"
BEFORE = "before"
DURING = "during"
WAYS = tuple((what, when) for what in (KILLED, TERMINATED) for when in (BEFORE, DURING))


@dataclass(frozen=True)
class Death:
    """At the statement of this number: before it is sent, or when it is sent but its answer has not been read."""

    at: int
    what: str = KILLED
    when: str = BEFORE

    def __str__(self) -> str:
        return f"{self.what} {self.when} statement {self.at}"


class Client:
    """A client with its two connections."""

    def __init__(self, shop: str, provider: str, *, clock: str = "0", death: Death | None = None) -> None:
        self._dsn = shop
        self._connections = {
            "shop": psycopg.connect(shop, autocommit=True, application_name="worker"),
            "provider": psycopg.connect(provider, autocommit=True, application_name="worker"),
        }
        self._connections["shop"].execute("select set_config('idem.clock_offset', %s, false)", [clock])
        self._death = death
        self.statements = 0

    def run(self, protocol: Protocol) -> str:
        """Return what the protocol does, unless death comes first."""
        answer = None
        self.statements = 0
        while True:
            try:
                statement = protocol.send(answer)
            except StopIteration as end:
                return str(end.value)
            self.statements += 1
            if self._death is not None and self._death.at == self.statements:
                answer = self._meet(self._death, statement)
            else:
                answer = self._execute(statement)

    def close(self) -> None:
        """Close both connections."""
        for connection in self._connections.values():
            connection.close()

    def _execute(self, statement: Statement) -> Any:
        cursor = self._connections[statement.database].cursor(row_factory=namedtuple_row)
        cursor.execute(statement.sql, statement.arguments)  # type: ignore[arg-type]
        return cursor.fetchone() if cursor.description else None

    def _meet(self, death: Death, statement: Statement) -> Any:
        connection = self._connections[statement.database]
        if death.when == DURING:
            text = psycopg.ClientCursor(connection).mogrify(statement.sql, statement.arguments)  # type: ignore[arg-type]
            connection.pgconn.send_query(text.encode())
            while connection.pgconn.flush():
                pass
        if death.what == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        with psycopg.connect(self._dsn, autocommit=True) as administrator:
            pid = self._connections["shop"].info.backend_pid
            administrator.execute("select pg_terminate_backend(%s, 20000)", [pid])
        if death.when == BEFORE:
            return self._execute(statement)
        # nobody reads the answer; the next statement tells whether there is a connection
        while connection.pgconn.get_result() is not None:
            pass
        raise psycopg.OperationalError("the connection is lost")

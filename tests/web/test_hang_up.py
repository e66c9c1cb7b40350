"""What the server's cancellation of a request does: the ASGI middleware by itself, called as a server would."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from pyidem import AsyncIdem, Decision
from pyidem.asgi import IdempotencyMiddleware, Protection
from tests.support.database import Database

Count = Callable[[str], int]
Handler = Callable[[], Awaitable[int]]


class Exchange:
    """One request as a server makes it of an application."""

    def __init__(self, app: Any, key: str) -> None:
        self.sent: list[dict[str, Any]] = []
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "query_string": b"",
            "headers": [(b"idempotency-key", key.encode())],
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    @property
    def status(self) -> int | None:
        """The status that was sent."""
        return self.sent[0]["status"] if self.sent else None

    async def _receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)


class App:
    """An application whose handler works, tells that it has, and goes on when it is told to."""

    def __init__(self, dsn: str, name: str) -> None:
        self.worked = asyncio.Event()
        self.go_on = asyncio.Event()
        self._dsn = dsn
        self._name = name

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG002 - as ASGI has it
        async with await psycopg.AsyncConnection.connect(self._dsn) as connection:
            await connection.execute("insert into orders (name) values (%s)", [self._name])
        self.worked.set()
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"made"})


async def test_cancelled_after_the_work_the_answer_is_stored(web_db: Database, name: str, orders: Count) -> None:
    async with AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False) as pool:
        idem, app = AsyncIdem(pool), App(web_db.dsn, name)
        middleware = IdempotencyMiddleware(app, idem, scope=lambda _: "client:1")
        first = Exchange(middleware, name)
        await app.worked.wait()
        first.task.cancel()
        with suppress(asyncio.CancelledError):
            await first.task
        assert (await idem.lookup("client:1", name)).outcome == "in_progress"
        app.go_on.set()
        await until(partial(is_over, idem, name))

        again = Exchange(middleware, name)
        await again.task

    assert again.status == 201
    assert again.sent[1]["body"] == b"made"
    assert orders(name) == 1


async def test_cancelled_while_the_answer_is_stored_it_is_stored_and_the_connection_whole(
    web_db: Database, name: str, observer: psycopg.Connection
) -> None:
    async with AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False) as pool:
        idem, app = AsyncIdem(pool), App(web_db.dsn, name)
        middleware = IdempotencyMiddleware(app, idem, scope=lambda _: "client:1")
        first = Exchange(middleware, name)
        await app.worked.wait()
        with observer.transaction():
            observer.execute("select idem.extend('client:1', key, token) from keys_of(%s)", [name])
            app.go_on.set()
            await until(partial(is_waited_for, observer))
            first.task.cancel()
            with suppress(asyncio.CancelledError):
                await first.task
        await until(partial(is_over, idem, name))
        again = Exchange(middleware, name)
        await again.task
        assert again.status == 201


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return as soon as the condition holds."""
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110 - it is the database's
            await asyncio.sleep(0.01)


async def is_over(idem: AsyncIdem[Any], key: str) -> bool:
    """Tell whether nobody is at work under the key."""
    return (await idem.lookup("client:1", key)).outcome != "in_progress"


async def is_waited_for(observer: psycopg.Connection) -> bool:
    """Tell whether somebody waits for this very session."""
    row = observer.execute(
        "select exists (select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid)))"
    ).fetchone()
    assert row is not None
    return bool(row[0])


@pytest.fixture(autouse=True)
def keys_of(observer: psycopg.Connection) -> None:
    """A function for these tests alone, which tells the token of a key."""
    observer.execute(
        "create or replace function keys_of(wanted text) returns table (key text, token uuid) language sql as"
        " $$ select key, token from idem_private.reservation where key = wanted $$"
    )


async def test_an_exception_after_the_answer_changes_nothing(web_db: Database, name: str) -> None:
    async with AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False) as pool:
        idem, app = AsyncIdem(pool), App(web_db.dsn, name)

        async def failing(scope: Any, receive: Any, send: Any) -> None:
            app.go_on.set()
            await app(scope, receive, send)
            raise RuntimeError("after the answer")

        exchange = Exchange(IdempotencyMiddleware(failing, idem, scope=lambda _: "client:1"), name)
        with pytest.raises(RuntimeError, match="after the answer"):
            await exchange.task
        assert exchange.status == 201
        assert (await idem.lookup("client:1", name)).outcome == "completed"


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_what_the_application_sets_in_context_variables_is_seen_outside(web_db: Database, name: str) -> None:
    seen = []
    async with AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False) as pool:
        app = App(web_db.dsn, name)
        app.go_on.set()

        async def setting(scope: Any, receive: Any, send: Any) -> None:
            variable.set("set inside")
            await app(scope, receive, send)

        middleware = IdempotencyMiddleware(setting, AsyncIdem(pool), scope=lambda _: "client:1")

        async def outside(scope: Any, receive: Any, send: Any) -> None:
            await middleware(scope, receive, send)
            seen.append(variable.get())

        await Exchange(outside, name).task
    assert seen == ["set inside"]


async def test_the_middleware_tells_of_every_decision(web_db: Database, name: str) -> None:
    told: list[Decision] = []
    async with AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False) as pool:
        app = App(web_db.dsn, name)
        app.go_on.set()
        middleware = IdempotencyMiddleware(
            app,
            AsyncIdem(pool, on_decision=told.append),
            scope=lambda scope: "client:1" if scope["headers"][0][1] != b"nobody" else None,
            protect=Protection(heartbeat=False),
        )
        for key in (name, name, "nobody"):
            await Exchange(middleware, key).task
    assert [(decision.name, decision.scope, decision.outcome, decision.attempt) for decision in told] == [
        ("http_reserve", "client:1", "started", 1),
        ("http_complete", "client:1", "stored", None),
        ("http_reserve", "client:1", "replay", 1),
        ("request", None, "scope_missing", None),
    ]
    assert all(name not in repr(decision) for decision in told)


async def test_a_scope_may_be_found_out_asynchronously(web_db: Database, name: str, orders: Count) -> None:
    async def client_of(_: Any) -> str:
        return "client:1"

    async with AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False) as pool:
        app = App(web_db.dsn, name)
        app.go_on.set()
        exchange = Exchange(IdempotencyMiddleware(app, AsyncIdem(pool), scope=client_of), name)
        await exchange.task
    assert (exchange.status, orders(name)) == (201, 1)


async def test_a_heartbeat_without_a_connection_for_it_is_refused_at_once(web_db: Database) -> None:
    async with await psycopg.AsyncConnection.connect(web_db.dsn) as connection:
        with pytest.raises(TypeError, match="second connection"):
            IdempotencyMiddleware(App(web_db.dsn, ""), AsyncIdem(connection), scope=lambda _: "s")


async def test_a_heartbeat_after_the_lease_is_refused_at_once(web_db: Database) -> None:
    late = Protection(lease=timedelta(seconds=30), heartbeat=timedelta(seconds=30))
    async with AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False) as pool:
        with pytest.raises(ValueError, match="shorter than the lease"):
            IdempotencyMiddleware(App(web_db.dsn, ""), AsyncIdem(pool), scope=lambda _: "s", protect=late)


@pytest.mark.parametrize("opens", [True, False])
async def test_where_the_database_is_gone_a_route_is_closed_or_open(name: str, opens: bool) -> None:
    told: list[Decision] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"unprotected"})

    pool: Any = AsyncConnectionPool(
        "host=127.0.0.1 port=1 connect_timeout=1", min_size=0, max_size=1, open=False, timeout=0.2
    )
    async with pool:
        idem = AsyncIdem(pool, on_decision=told.append)
        middleware = IdempotencyMiddleware(app, idem, scope=lambda _: "client:1", protect=Protection(fail_open=opens))
        exchange = Exchange(middleware, name)
        await exchange.task

    assert exchange.status == (201 if opens else 503)
    if not opens:
        assert (b"retry-after", b"1") in exchange.sent[0]["headers"]
    assert told[-1].outcome == ("open" if opens else "unavailable")


async def test_where_the_database_goes_before_the_answer_is_stored_another_one_is_sent(
    web_db: Database, name: str, orders: Count
) -> None:
    pool: Any = AsyncConnectionPool(web_db.dsn, min_size=1, max_size=1, open=False, timeout=0.2)
    async with pool:
        app = App(web_db.dsn, name)
        middleware = IdempotencyMiddleware(
            app, AsyncIdem(pool), scope=lambda _: "client:1", protect=Protection(heartbeat=False)
        )
        exchange = Exchange(middleware, name)
        await app.worked.wait()
        async with pool.connection():  # nobody else gets one any more
            app.go_on.set()
            await exchange.task
        outcome = (await AsyncIdem(pool).lookup("client:1", name)).outcome

    assert exchange.status == 503
    assert len(exchange.sent) == 2
    assert (outcome, orders(name)) == ("in_progress", 1)

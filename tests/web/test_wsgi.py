"""The WSGI middleware by itself, called as a server would: hang-ups, and a database that is gone."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from io import BytesIO
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from pyidem import Decision, Idem
from pyidem.wsgi import IdempotencyMiddleware, Protection
from tests.support.database import Database

Outcome = Callable[[str], str]


@pytest.fixture
def pool(web_db: Database) -> Iterator[ConnectionPool]:
    """A pool of one."""
    with ConnectionPool(web_db.dsn, min_size=1, max_size=1, open=True, timeout=0.2) as pool:
        yield pool


@pytest.fixture
def outcome(observer: psycopg.Connection) -> Outcome:
    """A function that looks at a key."""

    def look(key: str) -> str:
        row = observer.execute("select outcome from idem.lookup('client:1', %s)", [key]).fetchone()
        assert row is not None
        return str(row[0])

    return look


class Body:
    """An answer in parts, which counts how often it was closed."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = iter(parts)
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        self.closed += 1


class Server:
    """The part of a server."""

    def __init__(self, app: Any, key: str, **environ: str) -> None:
        self.statuses: list[str] = []
        self._environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/",
            "HTTP_IDEMPOTENCY_KEY": key,
            "CONTENT_LENGTH": "4",
            "wsgi.input": BytesIO(b"body"),
            **environ,
        }
        self.answer = app(self._environ, self._start_response)

    def _start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:  # noqa: ARG002
        self.statuses.append(status)


def answering(body: Any) -> Any:
    """Return an application."""

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        assert environ["wsgi.input"].read() == b"body"
        start_response("201 Created", [("content-type", "text/plain")])
        return body

    return app


def protected(app: Any, idem: Idem[Any], **options: Any) -> IdempotencyMiddleware:
    return IdempotencyMiddleware(app, idem, scope=lambda _: "client:1", protect=Protection(heartbeat=False, **options))


def test_the_answer_is_stored_before_its_last_part_goes_out(pool: ConnectionPool, name: str, outcome: Outcome) -> None:
    body = Body(b"one", b"two", b"three")
    server = Server(protected(answering(body), Idem(pool)), name)
    seen = [(part, outcome(name)) for part in server.answer]
    server.answer.close()

    assert seen == [(b"one", "in_progress"), (b"two", "in_progress"), (b"three", "completed")]
    assert (server.statuses, body.closed) == (["201 Created"], 1)


def test_an_answer_in_one_part_is_stored_before_anything_goes_out(
    pool: ConnectionPool, name: str, outcome: Outcome
) -> None:
    server = Server(protected(answering([b"all of it"]), Idem(pool)), name)
    assert server.statuses == []
    assert next(server.answer) == b"all of it"
    assert outcome(name) == "completed"


@pytest.mark.parametrize("taken", [0, 1])
def test_an_answer_that_is_closed_before_its_end_leaves_the_outcome_unknown(
    pool: ConnectionPool, name: str, outcome: Outcome, taken: int
) -> None:
    body = Body(b"one", b"two", b"three")
    server = Server(protected(answering(body), Idem(pool)), name)
    for _ in range(taken):
        next(server.answer)
    server.answer.close()

    assert (outcome(name), body.closed) == ("lapsed", 1)


@pytest.mark.parametrize("opens", [True, False])
def test_where_the_database_is_gone_a_route_is_closed_or_open(name: str, opens: bool) -> None:
    told: list[Decision] = []
    dsn = "host=127.0.0.1 port=1 connect_timeout=1"
    with ConnectionPool(dsn, min_size=0, max_size=1, open=True, timeout=0.2) as pool:
        app = protected(answering([b"unprotected"]), Idem(pool, on_decision=told.append), fail_open=opens)
        server = Server(app, name)

    assert server.statuses == ["201 Created" if opens else "503 Service Unavailable"]
    assert [(decision.name, decision.outcome) for decision in told] == [("request", "open" if opens else "unavailable")]


def test_where_the_database_goes_before_the_answer_is_stored_another_one_is_sent(
    pool: ConnectionPool, name: str, outcome: Outcome
) -> None:
    server = Server(protected(answering([b"all of it"]), Idem(pool)), name)
    with pool.connection():  # nobody else gets one any more
        parts = list(server.answer)

    assert server.statuses == ["503 Service Unavailable"]
    assert b"all of it" not in parts
    assert outcome(name) == "in_progress"


def test_where_a_part_is_out_already_the_answer_breaks_off(pool: ConnectionPool, name: str, outcome: Outcome) -> None:
    server = Server(protected(answering(Body(b"one", b"two")), Idem(pool)), name)
    assert next(server.answer) == b"one"
    with pool.connection(), pytest.raises(psycopg.OperationalError):
        next(server.answer)
    assert outcome(name) == "in_progress"


def test_a_request_that_ends_before_its_announced_length_is_not_taken_for_another_one(
    pool: ConnectionPool, name: str, outcome: Outcome
) -> None:
    told: list[Decision] = []
    server = Server(protected(answering([b"done"]), Idem(pool, on_decision=told.append)), name, CONTENT_LENGTH="5")
    assert server.statuses == ["400 Bad Request"]
    assert [(decision.name, decision.outcome) for decision in told] == [("request", "incomplete")]
    assert outcome(name) == "absent"


def test_a_single_connection_has_none_to_spare_for_a_heartbeat(web_db: Database) -> None:
    with psycopg.connect(web_db.dsn) as connection, pytest.raises(TypeError, match="second connection"):
        IdempotencyMiddleware(answering([]), Idem(connection), scope=lambda _: "s")


def test_a_heartbeat_after_the_lease_is_refused_at_once(pool: ConnectionPool) -> None:
    late = Protection(lease=timedelta(seconds=30), heartbeat=timedelta(seconds=30))
    with pytest.raises(ValueError, match="shorter than the lease"):
        IdempotencyMiddleware(answering([]), Idem(pool), scope=lambda _: "s", protect=late)

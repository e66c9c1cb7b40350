"""A worker that is killed in the middle of a request: atomic leaves nothing, leased an unknown outcome."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.database import Database
from tests.support.waiting import wait_until
from tests.web.conftest import Client, Gate, client_on
from tests.web.servers import uvicorn

Count = Callable[[str], int]


Serving = Callable[[str], AbstractContextManager[Client]]


@pytest.fixture
def serving(web_db: Database, log_of: Path) -> Serving:
    """A function that serves an application with two workers, for a block, and returns a client of it."""

    @contextmanager
    def serve(app: str) -> Iterator[Client]:
        with uvicorn(app, log_of, workers=2, APP_DSN=web_db.dsn) as address, client_on(address) as client:
            yield client

    return serve


def kill_worker(observer: psycopg.Connection) -> None:
    """Kill the worker whose handler is at the gate, which its connection bears the name of."""
    row = observer.execute(
        "select application_name from pg_stat_activity where wait_event = 'advisory' and application_name like 'w:%'"
        " and datname = current_database()"
    ).fetchone()
    assert row is not None
    os.kill(int(row[0].removeprefix("w:")), signal.SIGKILL)


def test_killed_in_an_atomic_block_a_worker_leaves_nothing_and_the_retry_runs(
    serving: Serving, name: str, orders: Count, gate: Gate, observer: psycopg.Connection
) -> None:
    order = {"name": name, "amount": 1, "fails": "gate"}
    with serving("tests.web.apps.fastapi_app:app") as web, ThreadPoolExecutor() as threads:
        first = threads.submit(web.order, "/orders", name, json=order)
        gate.wait_for()
        kill_worker(observer)
        assert isinstance(first.exception(), httpx.TransportError)
        gate.open()
        # until the database has noticed, the lost transaction is at work
        again = retried(lambda: web.order("/orders", name, json=order), while_status=409)
    assert again.status_code == 201
    assert "idempotency-replayed" not in again.headers
    assert orders(name) == 1


def test_killed_below_the_middleware_a_worker_leaves_an_unknown_outcome(
    serving: Serving, name: str, orders: Count, gate: Gate, observer: psycopg.Connection
) -> None:
    path = f"/gated?name={name}"
    with serving("tests.web.apps.asgi_app:app") as web, ThreadPoolExecutor() as threads:
        first = threads.submit(web.order, path, name)
        gate.wait_for()
        kill_worker(observer)
        assert isinstance(first.exception(), httpx.TransportError)
        gate.open()
        in_between = retried(lambda: web.order(path, name))
        observer.execute(
            "update idem_private.reservation set lease_until = created_at + interval '1 microsecond' where key = %s",
            [name],
        )
        later = web.order(path, name)
    assert (in_between.status_code, in_between.json()["code"]) == (409, "idempotency_request_in_progress")
    assert (later.status_code, later.json()["code"]) == (409, "idempotency_outcome_unknown")
    assert orders(name) == 1


def retried(request: Callable[[], httpx.Response], *, while_status: int = 0) -> httpx.Response:
    """Send a request again, as a client would, until a new worker answers with another status."""
    answers: list[httpx.Response] = []

    def answered() -> bool:
        with suppress(httpx.TransportError):
            answers.append(request())
        return bool(answers) and answers[-1].status_code != while_status

    wait_until(answered, "a new worker")
    return answers[-1]

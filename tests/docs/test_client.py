"""The examples of the Python client's page do what the page says."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy.engine import URL

import pyidem
from pyidem import AsyncIdem, Handled, Swept
from tests.docs.blocks import CLIENT, rows, sections
from tests.docs.examples import count, defined_by, files_in
from tests.support.database import OWNER, ROOT, Database


@pytest.fixture
def client(shop: Database) -> Iterator[dict[str, Any]]:
    """The names that the page's blocks define."""
    server = shop.cluster
    url = URL.create("postgresql+psycopg", "app", server.password, server.host, server.port, shop.name)
    names = defined_by(CLIENT, shop, url=url, asyncpg_url=url.set(drivername="postgresql+asyncpg"))
    with names["pool"]:
        yield names


def test_an_atomic_block_runs_once(client: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    first = client["create_order"]("client:1", key, 100)

    assert first.status == 201
    assert client["create_order"]("client:1", key, 100) == first
    assert client["look"]("client:1", key) == "completed"
    assert count(shop, "orders") == 1


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_joined_block_is_final_when_the_caller_commits(end: str, client: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    with client["pool"].connection() as connection:
        assert client["pay_order"](connection, "client:1", key, 100) == "started"
        assert client["look"]("client:1", key) == "absent"
        getattr(connection, end)()

    assert client["look"]("client:1", key) == {"commit": "completed", "rollback": "absent"}[end]
    assert count(shop, "orders") == {"commit": 1, "rollback": 0}[end]


def test_a_leased_block_runs_once(client: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    first = client["refund"]("client:1", key, "ch_1")

    assert client["refund"]("client:1", key, "ch_1") == first
    assert client["provider"].calls == count(shop, "refunds") == 1


def test_an_attempt_goes_on_from_the_checkpoint_of_the_last(client: dict[str, Any], shop: Database) -> None:
    key, scope = str(uuid4()), "client:1"
    idem, provider = client["idem"], client["provider"]
    with idem.leased(scope, key, state={"charge": "ch_1"}) as op:
        with op.transaction() as connection:
            connection.execute("insert into refunds (id) values ('re_9')")
            op.checkpoint("refunded", {"refund": "re_9"})
        op.release()

    answers = [client["refund_in_steps"](scope, key, "ch_1") for _ in range(2)]

    assert answers[0].body == answers[1].body == b'{"id":"re_9"}'
    assert (provider.calls, count(shop, "refunds"), count(shop, "orders")) == (0, 1, 1)


def test_steps_are_each_done_once(client: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    first = client["refund_in_steps"]("client:1", key, "ch_1")

    assert client["refund_in_steps"]("client:1", key, "ch_1") == first
    assert client["provider"].calls == count(shop, "refunds") == count(shop, "orders") == 1


def leave_stuck(client: dict[str, Any], shop: Database) -> str:
    """Leave a key whose refund was made, but whose answer was lost; let the application settle it."""
    with psycopg.connect(shop.dsn_of(OWNER), autocommit=True) as owner:
        owner.execute("select idem.grant_resolver('app')")
    key = str(uuid4())
    client["provider"].fails_after_the_work = True
    with pytest.raises(TimeoutError):
        client["refund_or_leave_it"]("client:1", key, "ch_1")
    client["provider"].fails_after_the_work = False
    return key


def test_a_sweeper_settles_what_the_first_attempt_left(client: dict[str, Any], shop: Database) -> None:
    key = leave_stuck(client, shop)

    assert client["sweeper"].run_once() == Swept(completed=1)

    assert client["refund_or_leave_it"]("client:1", key, "ch_1").status == 201
    assert len(client["provider"].made) == count(shop, "refunds") == 1


def test_a_webhook_settles_its_key_once(client: dict[str, Any], shop: Database) -> None:
    key = leave_stuck(client, shop)

    assert [client["on_webhook"]("client:1", key, "re_7") for _ in range(2)] == [200, 200]

    assert client["refund_or_leave_it"]("client:1", key, "ch_1").body == b'{"id":"re_7"}'
    with client["idem"].leased("client:1", "at work") as op:
        assert client["on_webhook"]("client:1", "at work", "re_8") == 503
        op.complete(204)
    assert count(shop, "refunds") == 1


def test_a_consumer_handles_a_message_once(client: dict[str, Any], shop: Database) -> None:
    message, acknowledged = {"id": str(uuid4()), "amount": 7}, []

    handled = [client["on_delivery"](message, lambda: acknowledged.append(1)) for _ in range(2)]

    assert handled == [Handled(True, "billed"), Handled(False, None)]
    assert len(acknowledged) == 2
    with client["pool"].connection() as connection:
        client["bill_in"](connection, message)
        client["bill_in"](connection, {**message, "id": "another"})
    assert count(shop, "orders") == 2


def test_of_a_batch_only_what_failed_is_delivered_again(client: dict[str, Any], shop: Database) -> None:
    good, bad = {"id": "good", "amount": 1}, {"id": "bad", "amount": None}

    with client["pool"].connection() as connection:
        assert client["bill_batch"](connection, [good, bad, good]) == ["bad"]
        assert client["bill_batch"](connection, [good, {**bad, "amount": 2}]) == []

    assert count(shop, "orders") == 2


def test_work_in_the_database_runs_once(client: dict[str, Any], shop: Database) -> None:
    with psycopg.connect(shop.dsn) as connection:
        connection.execute(
            "create function charge(args jsonb) returns idem.response language sql as $$"
            " insert into orders (amount) values ((args -> 'amount')::numeric);"
            " select idem.json_response(201, args::json) $$"
        )

    answers = [client["charge"]("client:1", "k", 5) for _ in range(2)]

    assert answers[0] == answers[1]
    assert count(shop, "orders") == 1


def test_the_engine_for_a_pooler_serves(client: dict[str, Any], shop: Database) -> None:
    async def call() -> str:
        version = await AsyncIdem(client["pooled_engine"]).version()
        await client["pooled_engine"].dispose()
        return version

    with psycopg.connect(shop.dsn) as connection:
        assert connection.execute("select idem.version()").fetchone() == (asyncio.run(call()),)


def test_the_fixtures_do_what_the_example_says(tmp_path: Path, testing_db: Database) -> None:
    for name, text in files_in(CLIENT).items():
        (tmp_path / name).write_text(text.replace('"dbname=app_test"', repr(testing_db.dsn)))

    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", tmp_path, "-p", "no:cacheprovider"]
    done = subprocess.run([*command, tmp_path], check=False, capture_output=True, text=True, cwd=ROOT)

    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_call_of_an_api_is_answered_under_one_key(client: dict[str, Any]) -> None:
    keys = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ReadTimeout("lost")
        return httpx.Response(201, headers={"Idempotency-Replayed": "true"}, json={"id": 1})

    transport = client["IdempotentTransport"](httpx.MockTransport(answer), sleep=lambda _: None)
    client["api"] = httpx.Client(base_url="http://shop.test", transport=transport)

    assert client["ask_for_refund"]("order-1", 100) == ({"id": 1}, True)
    assert len(keys) == 2
    assert len(set(keys)) == 1


def exchange(app: Any, engine: Any, *requests: dict[str, Any]) -> list[httpx.Response]:
    """Send requests to an ASGI application, one after the other."""

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as client:
            answers = [await client.request("POST", **request) for request in requests]
        await engine.dispose()
        return answers

    return asyncio.run(send())


def test_a_request_to_fastapi_is_worked_on_once(client: dict[str, Any], shop: Database) -> None:
    headers = {"idempotency-key": str(uuid4()), "authorization": "Bearer client:1"}
    order = {"url": "/orders", "headers": headers}

    first, again, other = exchange(
        client["web"],
        client["engine"],
        *({**order, "json": {"amount": amount}} for amount in (1, 1, 2)),
    )

    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    assert count(shop, "orders") == 1
    assert "/orders" in client["web"].openapi()["paths"]


def test_the_check_at_start_has_the_errors_that_the_page_lists(client: dict[str, Any], shop: Database) -> None:
    assert client["start"]() == shop.version()

    commands = {row[0].strip("`"): row[2].strip("`") for row in rows(sections(CLIENT)["At start"])}
    assert set(commands) == {error.__name__ for error in pyidem.NotReady.__subclasses__()}


async def lifespan_of(app: Any) -> None:
    """Start and end an ASGI application as a server does."""
    async with app.router.lifespan_context(app):
        pass


def test_an_application_of_fastapi_starts_only_on_a_database_that_serves_it(
    client: dict[str, Any], shop: Database
) -> None:
    async def start() -> None:
        try:
            await lifespan_of(client["web"])
        finally:
            await client["engine"].dispose()

    asyncio.run(start())
    with psycopg.connect(shop.dsn, autocommit=True) as admin:
        admin.execute("select idem.revoke_access('app')")
    with pytest.raises(pyidem.AccessMissing, match=r"Run: select idem\.grant_client\('app'\);"):
        asyncio.run(start())


def test_a_request_to_flask_is_worked_on_once(client: dict[str, Any], shop: Database) -> None:
    flask = client["flask_app"].test_client()
    headers = {"idempotency-key": str(uuid4()), "x-client": "client:1"}

    answers = [flask.post("/orders", json={"amount": 3}, headers=headers) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1].headers["idempotency-replayed"] == "true"
    assert count(shop, "orders") == 1


def test_a_patient_call_gets_the_answer(client: dict[str, Any], shop: Database) -> None:
    call = pyidem.HttpCall(str(uuid4()), "POST", "/orders")

    assert [client["pay_patiently"]("client:1", call).status for _ in range(2)] == [201, 201]
    assert count(shop, "orders") == 1


def test_the_application_in_the_middleware_sees_a_request_once(client: dict[str, Any]) -> None:
    request = {"url": "/pay", "json": {"charge": "ch_1"}}
    headers = {"idempotency-key": str(uuid4()), "x-client": "client:1"}

    first, again, nobody = exchange(
        client["asgi_app"],
        client["engine"],
        {**request, "headers": headers},
        {**request, "headers": headers},
        {**request, "headers": {"idempotency-key": "k"}},
    )

    assert (first.status_code, again.status_code, nobody.status_code) == (201, 201, 500)
    assert (first.content, again.headers["idempotency-replayed"]) == (again.content, "true")
    assert client["provider"].calls == 1
    assert client["protect"]({"path": "/webhooks/x"}) is None


def test_the_hook_counts_what_was_decided(client: dict[str, Any]) -> None:
    key = str(uuid4())
    for _ in range(2):
        with client["counted"].atomic("client:1", key) as op:
            if op.started:
                op.complete(201)

    assert client["counts"] == {("reserve", "started"): 1, ("complete", "stored"): 1, ("reserve", "replay"): 1}


def test_the_ready_hook_counts_into_a_registry(client: dict[str, Any]) -> None:
    registry = CollectorRegistry()
    measured = client["measured"](client["pool"], registry)

    measured.reserve("client:1", str(uuid4()), mode="leased")

    labels = {"call": "reserve", "outcome": "started", "sqlstate": ""}
    assert registry.get_sample_value("pyidem_decisions_total", labels) == 1


def test_an_asynchronous_block_runs_once(client: dict[str, Any], shop: Database) -> None:
    async def twice() -> list[Any]:
        key = str(uuid4())
        answers = [await client["create_order_async"]("client:1", key, 100) for _ in range(2)]
        await client["engine"].dispose()
        return answers

    first, second = asyncio.run(twice())

    assert first == second
    assert count(shop, "orders") == 1


def test_every_error_is_listed_with_its_sqlstate_and_status() -> None:
    listed = {row[0].strip("`"): (row[1].strip("`"), row[2]) for row in rows(sections(CLIENT)["Errors"])}
    errors = {
        name: error
        for name in pyidem.__all__
        if isinstance(error := getattr(pyidem, name), type) and issubclass(error, pyidem.IdempotencyError)
    }
    del errors["IdempotencyError"]

    assert listed == {name: (error.sqlstate, str(error.status or "")) for name, error in errors.items()}

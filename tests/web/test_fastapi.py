"""The dependency of FastAPI: what comes before the reservation, what becomes of the work, and what OpenAPI says."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.web.conftest import Client, Gate, client_on

Count = Callable[[str], int]
Serve = Callable[..., str]
APP = "tests.web.apps.fastapi_app:app"


@pytest.fixture
def web(serve: Serve) -> Iterator[Client]:
    """A client of the application."""
    with client_on(serve("uvicorn", APP)) as client:
        yield client


@pytest.fixture
def outcome(observer: psycopg.Connection) -> Callable[[str], str]:
    """A function that looks at a key."""

    def look(key: str) -> str:
        row = observer.execute("select outcome from idem.lookup('client:1', %s)", [key]).fetchone()
        assert row is not None
        return str(row[0])

    return look


def order_of(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "amount": 1, **more}


def test_two_hundred_parallel_requests_to_four_workers_have_one_effect(serve: Serve, name: str, orders: Count) -> None:
    with client_on(serve("uvicorn", APP, workers=4)) as web, ThreadPoolExecutor(200) as threads:
        requests = [threads.submit(web.order, "/orders", name, json=order_of(name)) for _ in range(200)]
        answers = [request.result() for request in requests]

    assert {answer.status_code for answer in answers} <= {201, 409}
    made = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in made}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in made) == 1
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {
        "idempotency_request_in_progress"
    }
    assert orders(name) == 1


def test_who_may_not_is_refused_before_anything_is_reserved_or_replayed(
    web: Client, name: str, orders: Count, outcome: Callable[[str], str]
) -> None:
    assert web.order("/orders", name, client="revoked", json=order_of(name)).status_code == 401
    assert (orders(name), outcome(name)) == (0, "absent")


def test_a_request_that_is_not_valid_leaves_its_key_free(web: Client, name: str, orders: Count) -> None:
    assert web.order("/orders", name, json={"name": name, "amount": -1}).status_code == 422
    assert web.order("/leased", name, json={"name": name, "amount": -1}).status_code == 422
    assert web.order("/orders", name, json=order_of(name)).status_code == 201
    assert orders(name) == 1


def test_without_a_scope_nothing_runs(web: Client, name: str, orders: Count) -> None:
    refused = web.order("/orders", name, client=None, json=order_of(name))

    assert (refused.status_code, refused.json()["code"]) == (500, "idempotency_scope_missing")
    assert orders(name) == 0


@pytest.mark.parametrize("case", [("exception", 404), ("answer", 503)])
def test_an_exception_or_an_answer_that_is_not_kept_undoes_the_work(
    web: Client, name: str, orders: Count, case: tuple[str, int], outcome: Callable[[str], str]
) -> None:
    fails, status = case
    first = web.order("/orders", name, json=order_of(name, fails=fails))

    assert (first.status_code, orders(name), outcome(name)) == (status, 0, "absent")
    assert web.order("/orders", name, json=order_of(name)).status_code == 201


@pytest.mark.parametrize(("status", "then"), [(201, "completed"), (409, "completed"), (403, "absent"), (502, "lapsed")])
def test_a_leased_answer_is_kept_released_or_unknown_by_its_status(
    web: Client, name: str, status: int, then: str, outcome: Callable[[str], str]
) -> None:
    assert web.order("/leased", name, json=order_of(name, fails=str(status))).status_code == status
    assert outcome(name) == then


def test_a_leased_endpoint_and_one_that_is_no_coroutine_replay_too(web: Client, name: str, orders: Count) -> None:
    for number, path in enumerate(["/leased", "/sync"], start=1):
        answers = [web.order(path, f"{name}-{number}", json=order_of(name)) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [201, 201, 201]
        assert [answer.headers.get("idempotency-replayed") for answer in answers] == [None, "true", "true"]
        assert orders(name) == number


def test_a_form_is_fingerprinted_by_its_fields(web: Client, name: str, orders: Count) -> None:
    first, again = (web.order("/form", name, data={"name": name}) for _ in range(2))
    other = web.order("/form", name, data={"name": name + "x"})

    assert (first.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert (other.status_code, other.json()["mismatched"]) == (422, ["/name"])
    assert orders(name) == 1


def test_a_duplicate_may_wait(web: Client, name: str, orders: Count, gate: Gate) -> None:
    order = order_of(name, fails="gate")
    with ThreadPoolExecutor(8) as threads:
        requests = [threads.submit(web.order, "/patient", name, json=order) for _ in range(8)]
        gate.wait_for()
        gate.open()
        answers = [request.result() for request in requests]

    assert {answer.status_code for answer in answers} == {201}
    assert orders(name) == 1


@pytest.fixture(scope="module")
def operations(serve: Serve) -> dict[str, Any]:
    """What the application's OpenAPI says of each path."""
    with client_on(serve("uvicorn", APP)) as client:
        paths: dict[str, Any] = client.get("/openapi.json").json()["paths"]
    return {path: operation["post"] for path, operation in paths.items()}


@pytest.mark.parametrize("path", ["/orders", "/leased", "/sync", "/form"])
def test_openapi_shows_the_header_and_every_answer(operations: dict[str, Any], path: str) -> None:
    operation = operations[path]
    headers = {parameter["name"]: parameter for parameter in operation["parameters"] if parameter["in"] == "header"}
    assert headers["Idempotency-Key"]["description"]
    assert headers["Idempotency-Key"]["required"] is False
    for status in ("400", "409", "410", "422"):
        assert "application/problem+json" in operation["responses"][status]["content"]
    assert "application/json" in operation["responses"]["422"]["content"]
    assert "Retry-After" in operation["responses"]["409"]["headers"]
    assert "Idempotency-Replayed" in operation["responses"]["201"]["headers"]
    schema = operation["responses"]["422"]["content"]["application/problem+json"]["schema"]
    assert "mismatched" in schema["properties"]


def test_an_openapi_key_is_no_constant_to_copy(operations: dict[str, Any]) -> None:
    parameter = next(p for p in operations["/orders"]["parameters"] if p["name"] == "Idempotency-Key")
    assert "example" not in parameter
    assert "examples" not in parameter

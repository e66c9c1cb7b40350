"""What a client may rely on: each requirement of the IETF draft and of Stripe's documentation that is seen over HTTP.

The draft is draft-ietf-httpapi-idempotency-key-header-07. Stripe's is the section on idempotent requests of its API
reference; a policy with the profile `stripe` speaks like it.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.web.conftest import Client, Gate, client_on

Count = Callable[[str], int]


@pytest.fixture
def web(serve: Callable[..., str]) -> Iterator[Client]:
    """A client of the FastAPI application."""
    with client_on(serve("uvicorn", "tests.web.apps.fastapi_app:app")) as client:
        yield client


def order_of(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "amount": 1, **more}


def test_draft_2_1_the_key_is_a_structured_field_string(web: Client, name: str) -> None:
    quoted = web.order("/orders", f'"{name}"', json=order_of(name))
    again = web.order("/orders", name, json=order_of(name))
    assert (quoted.status_code, again.headers["idempotency-replayed"]) == (201, "true")


@pytest.mark.parametrize("header", ['"open', 'a"b', "a, b", '"a" "b"', '"a";q=1', "", '""'])
def test_draft_2_1_what_is_no_such_string_is_no_key(web: Client, name: str, header: str, orders: Count) -> None:
    refused = web.order("/orders", header, json=order_of(name))
    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_invalid")
    assert orders(name) == 0


def test_draft_2_2_a_key_is_not_reused_with_another_payload(web: Client, name: str, orders: Count) -> None:
    web.order("/orders", name, json=order_of(name))
    assert web.order("/orders", name, json=order_of(name, amount=2)).status_code == 422
    assert orders(name) == 1


def test_draft_2_3_what_expires_is_announced_by_an_answer_of_its_own(
    web: Client, name: str, observer: psycopg.Connection
) -> None:
    observer.execute(
        "insert into idem.policies (name, ttl, min_retention, tombstone)"
        " values ('default', '1 day', '1 hour', '1 day') on conflict (name) do update set tombstone = '1 day'"
    )
    web.order("/orders", name, json=order_of(name))
    observer.execute(
        "update idem_private.reservation set created_at = created_at - interval '25 hours',"
        " completed_at = completed_at - interval '25 hours', expires_at = expires_at - interval '25 hours'"
        " where key = %s",
        [name],
    )
    expired = web.order("/orders", name, json=order_of(name))
    observer.execute("update idem.policies set tombstone = '0' where name = 'default'")
    assert (expired.status_code, expired.json()["code"]) == (410, "idempotency_key_expired")


def test_draft_2_4_a_fingerprint_finds_another_request_by_its_payload_not_by_its_bytes(web: Client, name: str) -> None:
    first = web.order("/orders", name, json=order_of(name))
    json_type = [("content-type", "application/json")]
    reordered = json.dumps(dict(reversed(order_of(name).items())), indent=2)
    again = web.order("/orders", name, content=reordered, headers=json_type)
    assert (first.content, again.headers["idempotency-replayed"]) == (again.content, "true")


def test_draft_2_6_first_time_the_request_is_processed(web: Client, name: str, orders: Count) -> None:
    answer = web.order("/orders", name, json=order_of(name))
    assert (answer.status_code, orders(name)) == (201, 1)
    assert "idempotency-replayed" not in answer.headers


def test_draft_2_6_a_duplicate_gets_the_result_of_the_completed_one(web: Client, name: str, orders: Count) -> None:
    first, again = (web.order("/orders", name, json=order_of(name)) for _ in range(2))
    assert (again.status_code, again.content, again.headers["location"]) == (
        first.status_code,
        first.content,
        first.headers["location"],
    )
    assert orders(name) == 1


def test_draft_2_6_a_concurrent_one_gets_a_conflict(web: Client, name: str, orders: Count, gate: Gate) -> None:
    order = order_of(name, fails="gate")
    with ThreadPoolExecutor() as threads:
        first = threads.submit(web.order, "/orders", name, json=order)
        gate.wait_for()
        conflict = web.order("/orders", name, json=order)
        gate.open()
        assert first.result().status_code == 201
    assert (conflict.status_code, conflict.headers["retry-after"]) == (409, "1")
    assert conflict.headers["content-type"] == "application/problem+json"
    assert orders(name) == 1


def test_draft_2_7_a_missing_key_is_400_where_the_resource_needs_one(web: Client, name: str) -> None:
    missing = web.order("/required", None, json=order_of(name))
    assert (missing.status_code, missing.json()["code"]) == (400, "idempotency_key_missing")
    assert missing.headers["content-type"] == "application/problem+json"


def test_draft_2_7_a_reused_key_is_422(web: Client, name: str) -> None:
    web.order("/orders", name, json=order_of(name))
    reused = web.order("/orders", name, json=order_of(name, amount=3))
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency_key_reused")
    assert reused.headers["content-type"] == "application/problem+json"


def test_draft_2_7_a_problem_document_says_what_and_what_to_do(web: Client, name: str) -> None:
    problem = web.order("/required", None, json=order_of(name)).json()
    assert problem.keys() >= {"type", "title", "status", "detail", "code"}
    assert problem["status"] == 400


def test_draft_5_a_key_of_one_client_says_nothing_to_another(web: Client, name: str, orders: Count) -> None:
    first = web.order("/orders", name, client="client:1", json=order_of(name))
    other = web.order("/orders", name, client="client:2", json=order_of(name, amount=2))
    assert (first.status_code, other.status_code, orders(name)) == (201, 201, 2)


@pytest.fixture
def stripe(serve: Callable[..., str]) -> Iterator[Client]:
    """A client of the FastAPI application's endpoints that speak like Stripe."""
    with client_on(serve("uvicorn", "tests.web.apps.fastapi_app:app") + "/stripe") as client:
        yield client


def test_stripe_the_status_and_body_of_the_first_request_are_saved(stripe: Client, name: str, orders: Count) -> None:
    first, again = (stripe.order("/orders", name, json=order_of(name)) for _ in range(2))
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert orders(name) == 1


def test_stripe_even_a_500_is_saved(stripe: Client, name: str, orders: Count) -> None:
    first, again = (stripe.order("/orders", name, json=order_of(name, fails="answer")) for _ in range(2))
    assert (first.status_code, again.status_code, again.headers["idempotent-replayed"]) == (503, 503, "true")
    assert first.content == again.content
    assert orders(name) == 1


def test_stripe_other_parameters_are_an_error(stripe: Client, name: str, orders: Count) -> None:
    stripe.order("/orders", name, json=order_of(name))
    refused = stripe.order("/orders", name, json=order_of(name, amount=2))
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "idempotency_error"
    assert orders(name) == 1


def test_stripe_a_concurrent_request_is_409(stripe: Client, name: str, gate: Gate) -> None:
    order = order_of(name, fails="gate")
    with ThreadPoolExecutor() as threads:
        first = threads.submit(stripe.order, "/orders", name, json=order)
        gate.wait_for()
        conflict = stripe.order("/orders", name, json=order)
        gate.open()
        assert first.result().status_code == 201
    assert conflict.status_code == 409
    assert conflict.json()["error"]["code"] == "idempotency_key_in_use"


def test_stripe_nothing_is_saved_before_the_work_begins(stripe: Client, name: str, orders: Count) -> None:
    assert stripe.order("/orders", name, json={"name": name, "amount": -1}).status_code == 422
    assert stripe.order("/orders", name, json=order_of(name)).status_code == 201
    assert orders(name) == 1


def test_stripe_a_key_has_up_to_255_characters(stripe: Client, name: str) -> None:
    assert stripe.order("/orders", name.ljust(255, "x"), json=order_of(name)).status_code == 201
    assert stripe.order("/orders", name.ljust(256, "x"), json=order_of(name)).status_code == 400


def test_stripe_get_needs_no_key(web: Client, name: str, observer: psycopg.Connection) -> None:
    assert web.get("/openapi.json", headers={"idempotency-key": name}).status_code == 200
    assert observer.execute("select outcome from idem.lookup('client:1', %s)", [name]).fetchone() == ("absent",)

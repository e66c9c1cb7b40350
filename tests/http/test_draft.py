"""What draft-ietf-httpapi-idempotency-key-header asks of a server, requirement by requirement.

The numbers are those of its sections. What it asks of clients and of documentation alone is not here.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support.database import Database, advance_clock

BODY = b'{"amount": 100}'


@dataclass(frozen=True)
class Answer:
    outcome: str
    key: str | None
    token: UUID | None
    status: int | None
    headers: list[list[str]] | None
    body: bytes | None

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers is not None
        assert ["Content-Type", "application/problem+json"] in self.headers
        problem: dict[str, Any] = json.loads(self.body or b"")
        return problem


def send(
    connection: psycopg.Connection,
    header: str | None,
    body: bytes = BODY,
    *,
    method: str = "POST",
    mode: str = "atomic",
    policy: str = "default",
) -> Answer:
    row = connection.execute(
        "select outcome, key, token, status, headers, body from idem.http_reserve("
        "'client', %s, %s, '/orders', %s, 'application/json', mode => %s, policy => %s)",
        [header, method, body, mode, policy],
    ).fetchone()
    assert row is not None
    return Answer(*row)


def answer(connection: psycopg.Connection, request: Answer, status: int, body: bytes | None = None) -> str:
    row = connection.execute(
        "select idem.http_complete('client', %s, %s, %s, '[[\"Location\", \"/orders/1\"]]', %s)",
        [request.key, request.token, status, body],
    ).fetchone()
    assert row is not None
    outcome: str = row[0]
    return outcome


def policy(connection: psycopg.Connection, **settings: Any) -> str:
    columns = ", ".join(settings)
    connection.execute(
        f"insert into idem.policies (name, {columns}) values ('special', {', '.join(['%s'] * len(settings))})".encode(),
        list(settings.values()),
    )
    return "special"


def test_2_1_the_key_is_a_structured_field_string(tx: psycopg.Connection) -> None:
    request = send(tx, '"8e03978e-40d5-43dd-bc93-6894a57f9324"')

    assert (request.outcome, request.key) == ("started", "8e03978e-40d5-43dd-bc93-6894a57f9324")


@pytest.mark.parametrize("header", ["", '"', '"a', 'a"', '"a" b', '"a", "b"', '"\\x"', "'a b'", '("a")x y'])
def test_2_1_a_value_that_is_no_string_is_a_bad_request(header: str, tx: psycopg.Connection) -> None:
    request = send(tx, header)

    assert (request.status, request.problem["code"]) == (400, "idempotency_key_invalid")


def test_2_2_a_key_is_not_reused_with_another_payload(tx: psycopg.Connection) -> None:
    answer(tx, send(tx, '"k"'), 201)

    reused = send(tx, '"k"', b'{"amount": 200}')

    assert (reused.status, reused.problem["code"]) == (422, "idempotency_key_reused")


def test_2_3_a_key_expires_and_may_then_be_used_again(tx: psycopg.Connection) -> None:
    answer(tx, send(tx, '"k"'), 201)
    advance_clock(tx, timedelta(hours=24, seconds=1))

    assert send(tx, '"k"', b'{"amount": 200}').outcome == "started"


def test_2_3_the_expiration_is_published(tx: psycopg.Connection) -> None:
    name = policy(tx, ttl=timedelta(days=3))

    row = tx.execute("select idem.policy_document(%s)", [name]).fetchone()

    assert row is not None
    assert row[0]["retention_seconds"] == 3 * 24 * 3600


def test_2_3_an_attempt_after_the_expiration_is_told_so_where_the_policy_remembers(tx: psycopg.Connection) -> None:
    name = policy(tx, tombstone=timedelta(days=30))
    answer(tx, send(tx, '"k"', policy=name), 201)
    advance_clock(tx, timedelta(hours=25))

    expired = send(tx, '"k"', policy=name)

    assert (expired.status, expired.problem["code"]) == (410, "idempotency_key_expired")


def test_2_4_the_fingerprint_is_that_of_what_the_payload_says(tx: psycopg.Connection) -> None:
    answer(tx, send(tx, '"k"'), 201)

    assert send(tx, '"k"', b'{ "amount": 1.00e2 }').outcome == "replay"


def test_2_4_selected_parts_of_the_payload_can_be_the_fingerprint(tx: psycopg.Connection) -> None:
    name = policy(tx, include=["/amount"])
    answer(tx, send(tx, '"k"', policy=name), 201)

    assert send(tx, '"k"', b'{"amount": 100, "sent_at": "now"}', policy=name).outcome == "replay"
    assert send(tx, '"k"', b'{"amount": 101}', policy=name).outcome == "mismatch"


def test_2_6_a_first_request_is_processed(tx: psycopg.Connection) -> None:
    request = send(tx, '"k"')

    assert (request.outcome, request.status) == ("started", None)


@pytest.mark.parametrize(("status", "body"), [(201, b'{"id": 1}'), (204, None), (402, b'{"error": "declined"}')])
def test_2_6_a_retry_gets_the_result_of_the_first_success_or_error(
    status: int, body: bytes | None, tx: psycopg.Connection
) -> None:
    assert answer(tx, send(tx, '"k"'), status, body) == "stored"

    for _ in range(2):
        retry = send(tx, '"k"')
        assert (retry.outcome, retry.status, retry.body) == ("replay", status, body)
        assert retry.headers == [["Location", "/orders/1"], ["Idempotency-Replayed", "true"]]


def test_2_6_a_concurrent_request_is_a_conflict_and_does_not_wait(db: Database) -> None:
    with db.connect() as first, db.connect(autocommit=True) as second:
        request = send(first, '"k"')
        second.execute("set statement_timeout = '10s'")

        concurrent = send(second, '"k"')

        assert (concurrent.status, concurrent.problem["code"]) == (409, "idempotency_request_in_progress")
        assert ["Retry-After", "1"] in (concurrent.headers or [])
        answer(first, request, 201, b"done")
        first.commit()
        assert (send(second, '"k"').status, send(second, '"k"').body) == (201, b"done")


def test_2_6_a_concurrent_request_after_the_first_has_committed_its_lease_is_a_conflict_too(db: Database) -> None:
    with db.connect(autocommit=True) as first, db.connect(autocommit=True) as second:
        request = send(first, '"k"', mode="leased")

        assert send(second, '"k"', mode="leased").status == 409
        assert answer(first, request, 201) == "stored"
        assert send(second, '"k"', mode="leased").status == 201


def test_2_7_a_missing_key_is_a_bad_request_where_it_is_required(tx: psycopg.Connection) -> None:
    name = policy(tx, required=True)

    assert send(tx, None, policy=name).problem["status"] == 400
    assert send(tx, None).outcome == "unprotected"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"])
def test_2_7_methods_that_are_idempotent_need_no_key(method: str, tx: psycopg.Connection) -> None:
    name = policy(tx, required=True)

    assert send(tx, None, method=method, policy=name).outcome == "unprotected"
    assert send(tx, '"k"', method=method, policy=name).outcome == "unprotected"


@pytest.mark.parametrize("header", [None, "a b"])
def test_2_7_the_problem_links_to_the_documentation(header: str | None, tx: psycopg.Connection) -> None:
    name = policy(tx, required=True, problem_type_base="https://developer.example.com/idempotency#")

    problem = send(tx, header, policy=name).problem

    assert problem["type"] == f"https://developer.example.com/idempotency#{problem['code']}"
    assert {"type", "title", "status", "detail", "code"} <= problem.keys()


def test_a_refused_request_leaves_the_transaction_usable(tx: psycopg.Connection) -> None:
    answer(tx, send(tx, '"k"'), 201)
    for header, body in [("a b", BODY), ('"k"', b"{}"), (None, BODY), ('"k"', BODY)]:
        send(tx, header, body)

    assert send(tx, '"other"').outcome == "started"


def test_several_requests_may_be_reserved_in_one_transaction(db: Database) -> None:
    with db.connect() as connection:
        outcomes = [send(connection, f'"{n}"', mode="leased").outcome for n in range(3)]

        assert outcomes == ["started"] * 3

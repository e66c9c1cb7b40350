"""The hook: every decision is told once, in every flavour, without a key, a body or a token."""

import logging
from uuid import uuid4

import psycopg
import pytest

from pyidem import AsyncIdem, Decision, HttpCall, Idem, LostReservation
from tests.client.flavours import Client

SECRET = "secret-key-and-body"


@pytest.fixture
def told(client: Client) -> list[Decision]:
    """What the hook of the client is told."""
    decisions: list[Decision] = []
    client.idem = (AsyncIdem if client.asynchronous else Idem)(client.origin, on_decision=decisions.append)
    return decisions


def outcomes(told: list[Decision]) -> list[tuple[str, str]]:
    """Return the names and outcomes, and forget them."""
    seen = [(decision.name, decision.outcome) for decision in told]
    assert all(SECRET not in repr(decision) for decision in told)
    assert all(0 <= decision.seconds < 60 for decision in told)
    told.clear()
    return seen


def test_an_atomic_operation_is_a_reservation_and_an_answer(client: Client, scope: str, told: list[Decision]) -> None:
    with client.atomic(scope, SECRET) as op:
        client.insert(op.connection, scope)
        op.complete(201, SECRET)
    assert [(decision.scope, decision.attempt) for decision in told] == [(scope, 1), (scope, None)]
    assert outcomes(told) == [("reserve", "started"), ("complete", "stored")]
    with client.atomic(scope, SECRET, fingerprint=b"other"):
        pass
    assert outcomes(told) == [("reserve", "mismatch")]


def test_a_request_is_told_by_its_own_functions(client: Client, scope: str, told: list[Decision]) -> None:
    call = HttpCall(SECRET, "POST", "/", SECRET.encode())
    for status, verdict in ((503, "rollback"), (201, "stored")):
        with client.atomic(scope, call) as op:
            op.complete(status, SECRET)
        assert op.verdict == verdict
        assert outcomes(told) == [("http_reserve", "started"), ("http_complete", verdict)]
    with client.leased(scope, HttpCall(None, "POST", "/")) as op:
        op.complete(201)
    assert outcomes(told) == [("http_reserve", "unprotected")]


def test_the_calls_of_a_leased_owner_are_told(client: Client, scope: str, told: list[Decision]) -> None:
    with client.leased(scope, SECRET) as op:
        client.finish(op.extend())
        with client.block(op.transaction):
            op.checkpoint("half")
        client.finish(op.defer())
    client.release(scope, SECRET, op.token)
    assert outcomes(told) == [
        ("reserve", "started"),
        ("extend", "extended"),
        ("checkpoint", "reached"),
        ("defer", "deferred"),
        ("release", "released"),
    ]


def test_messages_are_told_one_by_one(client: Client, scope: str, told: list[Decision]) -> None:
    lent = client.lend()
    client.once(scope, "m1", on=lent)
    client.once_many(scope, ["m1", "m2"], on=lent)
    client.once_undo(scope, ["m2"], on=lent)
    client.finish(lent.rollback())
    assert outcomes(told) == [
        ("once", "first"),
        ("once_many", "duplicate"),
        ("once_many", "first"),
        ("once_undo", "undone"),
    ]


def test_an_error_is_told_by_its_state(client: Client, scope: str, told: list[Decision]) -> None:
    client.reserve(scope, SECRET, mode="leased")
    told.clear()
    with pytest.raises(LostReservation):
        client.complete(scope, SECRET, uuid4())
    assert [(decision.outcome, decision.sqlstate) for decision in told] == [("error", "IK002")]


def test_what_decides_nothing_is_not_told(client: Client, scope: str, told: list[Decision]) -> None:
    client.lookup(scope, SECRET)
    client.version()
    client.downstream_key(scope, SECRET)
    assert told == []


def test_a_hook_that_fails_is_logged_and_changes_nothing(
    client: Client, scope: str, caplog: pytest.LogCaptureFixture, observer: psycopg.Connection
) -> None:
    def fail(_: Decision) -> None:
        raise ZeroDivisionError

    client.idem = (AsyncIdem if client.asynchronous else Idem)(client.origin, on_decision=fail)
    with caplog.at_level(logging.ERROR, "pyidem"), client.atomic(scope, "k") as op:
        op.complete(201)
    assert {record.message for record in caplog.records} == {"decision.hook_failed"}
    row = observer.execute("select outcome from idem.lookup(%s, 'k')", [scope]).fetchone()
    assert row == ("completed",)

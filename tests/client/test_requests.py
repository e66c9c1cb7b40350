"""A request in place of a key: its answers, whatever the outcome, and what becomes of the work."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from pyidem import HttpCall, IdempotencyError, KeyMissing, KeyReused, NotCompleted, NotKept, OutcomeUnknown, WrongMode
from pyidem._flows import _NEVER
from tests.client.flavours import Client, OpenClient
from tests.support.waiting import wait_until

Count = Callable[[str], int]


def call_of(key: str | None = "k", body: Any = None, **parts: Any) -> HttpCall:
    """Make a request."""
    content = json.dumps({"amount": 1} if body is None else body).encode()
    given = {"key_header": key, "method": "POST", "path": "/orders", "body": content}
    return HttpCall(**(given | {"content_type": "application/json"} | parts))


def buy(client: Client, scope: str, call: HttpCall, status: int = 201, **options: Any) -> Any:
    """Insert an order and answer, once; return the operation."""
    with client.atomic(scope, call, **options) as op:
        if op.started:
            client.insert(op.connection, scope)
            op.complete(status, {"id": 1}, headers=[("location", "/orders/1")])
    return op


@pytest.fixture(scope="module")
def policies(client_db: Any) -> None:
    """Policies for these tests."""
    with psycopg.connect(client_db.dsn) as connection:
        connection.execute(
            "insert into idem.policies (name, required, profile, lease) values"
            " ('needs_key', true, 'ietf', '1 minute'), ('like_stripe', false, 'stripe', '1 minute'),"
            " ('short', false, 'ietf', '2 seconds') on conflict do nothing"
        )


def test_the_key_is_what_the_header_names(client: Client, scope: str, orders: Count) -> None:
    quoted, bare = buy(client, scope, call_of('"k"')), buy(client, scope, call_of("k"))
    assert (quoted.key, bare.key) == ("k", "k")
    assert (quoted.outcome, bare.outcome) == ("started", "replay")
    assert quoted.verdict == "stored"
    assert bare.response.status == 201
    assert bare.response.body == quoted.response.body == b'{"id":1}'
    assert ("Idempotency-Replayed", "true") in bare.response.headers
    assert orders(scope) == 1


def test_every_refusal_has_its_answer(client: Client, scope: str, policies: None, orders: Count) -> None:  # noqa: ARG001
    buy(client, scope, call_of())
    refusals = {
        "mismatch": (422, "idempotency_key_reused", buy(client, scope, call_of(body={"amount": 2}))),
        "missing": (400, "idempotency_key_missing", buy(client, scope, call_of(None), policy="needs_key")),
        "invalid": (400, "idempotency_key_invalid", buy(client, scope, call_of("a b"))),
    }
    for outcome, (status, code, op) in refusals.items():
        assert (op.outcome, op.started, op.verdict) == (outcome, False, None)
        assert op.response.status == status
        assert json.loads(op.response.body)["code"] == code
        with pytest.raises(IdempotencyError) as raised:
            op.raise_for_outcome()
        assert (raised.value.status, raised.value.code) == (status, code)
        assert raised.value.response == op.response
    assert orders(scope) == 1


def test_what_differs_is_named(client: Client, scope: str) -> None:
    buy(client, scope, call_of())
    op = buy(client, scope, call_of(body={"amount": 2}, path="/refunds"))
    assert set(op.mismatched) == {"/amount", "path"}
    with pytest.raises(KeyReused) as raised:
        op.raise_for_outcome()
    assert raised.value.mismatched == op.mismatched


def test_what_differs_is_named_in_stripes_dialect_too(client: Client, scope: str, policies: None) -> None:  # noqa: ARG001
    buy(client, scope, call_of(), policy="like_stripe")
    op = buy(client, scope, call_of(body={"amount": 2}), policy="like_stripe")
    assert (op.response.status, op.mismatched) == (400, ["/amount"])


def test_a_heartbeat_learns_the_length_of_the_lease_from_the_database(
    open_client: OpenClient,
    scope: str,
    policies: None,  # noqa: ARG001
    observer: psycopg.Connection,
) -> None:
    for name in ("sync-pool", "async-pool"):
        client = open_client(name)
        with client.leased(scope, call_of(name), policy="short", heartbeat=True) as op:
            first = lease_until(observer, scope, name)
            wait_until(partial(is_later, observer, scope, name, first), "a heartbeat")
            wait_until(partial(has_learnt, op._heartbeat), "the length to be learnt")
            op.complete(201)
        assert op.verdict == "stored"


def lease_until(observer: psycopg.Connection, scope: str, key: str) -> datetime:
    row = observer.execute("select lease_until from idem.lookup(%s, %s)", [scope, key]).fetchone()
    assert row is not None
    assert isinstance(row[0], datetime)
    return row[0]


def has_learnt(heartbeat: Any) -> bool:
    return bool(heartbeat._interval == pytest.approx(2 / 3, abs=0.1))


def is_later(observer: psycopg.Connection, scope: str, key: str, than: datetime) -> bool:
    return lease_until(observer, scope, key) > than


def test_a_running_attempt_is_answered_with_a_time_to_wait(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    observer.execute("select from idem.http_reserve(%s, 'k', 'POST', '/orders', mode => 'leased')", [scope])
    op = buy(client, scope, HttpCall("k", "POST", "/orders"))
    assert op.outcome == "in_progress"
    assert dict(op.response.headers)["Retry-After"] == "1"
    assert op.retry_after == timedelta(seconds=1)


@pytest.mark.parametrize("status", [401, 403, 408, 425, 429, 500, 503])
def test_an_answer_that_is_not_kept_undoes_the_work_and_is_sent(
    client: Client, scope: str, orders: Count, status: int
) -> None:
    op = buy(client, scope, call_of(), status)
    assert op.verdict == "rollback"
    assert (op.response.status, op.response.body) == (status, b'{"id":1}')
    assert orders(scope) == 0
    assert client.lookup(scope, "k").outcome == "absent"
    assert buy(client, scope, call_of()).verdict == "stored"
    assert orders(scope) == 1


def test_in_a_transaction_of_the_callers_it_tells_the_caller_to_roll_back(
    client: Client, scope: str, orders: Count
) -> None:
    lent = client.lend()
    with pytest.raises(NotKept) as raised:
        buy(client, scope, call_of(), 503, on=lent, commit=False)
    client.finish(lent.rollback())
    assert raised.value.response is not None
    assert raised.value.response.status == 503
    assert (orders(scope), client.lookup(scope, "k").outcome) == (0, "absent")

    op = buy(client, scope, call_of(), 503, on=lent, commit=True)
    assert (op.verdict, op.response.status) == ("rollback", 503)
    assert (orders(scope), client.lookup(scope, "k").outcome) == (0, "absent")

    op = buy(client, scope, call_of(), on=lent, commit=True)
    assert op.verdict == "stored"
    assert orders(scope) == 1


def test_another_keys_unfinished_reservation_is_no_answer(client: Client, scope: str, orders: Count) -> None:
    with pytest.raises(NotCompleted, match="not completed"), client.atomic(scope, call_of()) as op:
        client.insert(op.connection, scope)
        client.execute(op.connection, f"select outcome from idem.reserve('{scope}', 'another')")
        op.complete(201)
    assert (orders(scope), client.lookup(scope, "k").outcome) == (0, "absent")
    with pytest.raises(NotCompleted):
        _ = op.response


def test_an_answer_needs_a_status(client: Client, scope: str) -> None:
    for mode in (client.atomic, client.leased):
        with pytest.raises(TypeError, match="status"), mode(scope, call_of()) as op:
            op.complete()


def test_the_fingerprint_of_a_request_is_not_the_callers_to_give(client: Client, scope: str) -> None:
    with pytest.raises(TypeError, match="fingerprint"):
        client.idem.atomic(scope, call_of(), fingerprint=b"x")


def test_without_a_key_the_work_is_done_each_time(client: Client, scope: str, orders: Count) -> None:
    for _ in range(2):
        op = buy(client, scope, call_of(None))
        assert (op.outcome, op.started, op.protected, op.verdict) == ("unprotected", True, False, "unprotected")
        assert op.response.status == 201
    assert orders(scope) == 2
    with pytest.raises(NotCompleted), client.atomic(scope, call_of(None)) as op:
        client.insert(op.connection, scope)
    assert orders(scope) == 2


def test_leased_without_a_key_everything_works_and_nothing_is_stored(
    client: Client, scope: str, orders: Count, observer: psycopg.Connection
) -> None:
    with client.leased(scope, call_of(None), state={"a": 1}) as op:
        assert (op.outcome, op.state) == ("unprotected", {"a": 1})
        key = op.downstream_key()
        assert key == op.downstream_key()
        assert client.finish(op.downstream_key_for("mail")) not in (key, client.finish(op.downstream_key_for("sms")))
        assert client.finish(op.extend()) == _NEVER
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.checkpoint("inserted", {"b": 2})
        assert (op.recovery_point, op.state) == ("inserted", {"b": 2})
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201)
    assert (op.verdict, op.response.status, orders(scope)) == ("unprotected", 201, 2)
    with pytest.raises(ZeroDivisionError), client.leased(scope, call_of(None)) as failed:
        raise ZeroDivisionError
    with client.leased(scope, call_of(None)) as released:
        client.finish(released.release())
    with pytest.raises(NotCompleted):
        _ = released.response
    with pytest.raises(OutcomeUnknown):
        _ = failed.response
    assert observer.execute("select count(*) from idem.keys where scope = %s", [scope]).fetchone() == (0,)


@pytest.mark.parametrize(
    "case",
    [
        (201, "stored", "completed"), (404, "stored", "completed"), (403, "released", "absent"),
        (429, "released", "absent"), (408, "deferred", "lapsed"), (502, "deferred", "lapsed"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("inside", [True, False])
def test_the_status_of_a_leased_answer_says_what_becomes_of_the_key(
    client: Client, scope: str, orders: Count, case: tuple[int, str, str], inside: bool
) -> None:
    status, verdict, then = case
    with client.leased(scope, call_of()) as op:
        if inside:
            with client.block(op.transaction) as connection:
                client.insert(connection, scope)
                op.complete(status, {"id": 1})
        else:
            op.complete(status, {"id": 1})
    assert (op.verdict, op.response.status, op.response.body) == (verdict, status, b'{"id":1}')
    assert client.lookup(scope, "k").outcome == then
    assert orders(scope) == (1 if inside else 0)


def test_a_repeated_answer_rolls_the_repeated_work_back(
    client: Client, scope: str, orders: Count, observer: psycopg.Connection
) -> None:
    with client.leased(scope, call_of()) as op:
        observer.execute(
            "select idem.http_complete(%s, 'k', %s, 201, '[[\"content-type\", \"application/json\"]]', '{\"id\":1}')",
            [scope, op.token],
        )
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201, {"id": 1})
    assert (op.verdict, op.response.status, orders(scope)) == ("repeated", 201, 0)


def test_the_state_comes_back_to_the_next_attempt(client: Client, scope: str) -> None:
    with pytest.raises(ZeroDivisionError), client.leased(scope, call_of(), state={"charge": 1}) as op:
        assert op.state == {"charge": 1}
        raise ZeroDivisionError
    with client.leased(scope, call_of(), state={"charge": 2}) as again:
        assert again.outcome == "unresolved"
    assert again.response.status == 409
    assert json.loads(again.response.body or b"")["code"] == "idempotency_outcome_unknown"


def test_a_handler_in_a_test_suites_one_transaction_is_undone_too(open_client: OpenClient, scope: str) -> None:
    for name in ("sync-connection", "async-connection"):
        client = open_client(name)
        client.execute(client.origin, "set idem.single_transaction = on")
        client.execute(client.origin, "select 1")
        op = buy(client, scope, call_of(), 503)
        assert op.verdict == "rollback"
        assert client.execute(client.origin, f"select count(*) from orders where name = '{scope}'") == [(0,)]
        assert buy(client, scope, call_of()).verdict == "stored"
        client.finish(client.origin.rollback())


def test_the_calls_by_themselves(client: Client, scope: str) -> None:
    reserved = client.http_reserve(scope, call_of(), mode="leased")
    assert (reserved.outcome, reserved.key, reserved.started) == ("started", "k", True)
    assert client.http_complete(scope, "k", reserved.token, 201, body="x") == "stored"
    assert client.http_complete(scope, "k", reserved.token, 201, body="x") == "repeated"
    assert client.http_reserve(scope, call_of(), mode="leased").response.body == b"x"
    assert client.http_complete(scope, None, None, 201) == "unprotected"


def test_a_wait_ends_with_the_other_attempts_answer(
    client: Client, scope: str, in_thread: Callable[..., Any], observer: psycopg.Connection
) -> None:
    reserved = client.http_reserve(scope, call_of(), mode="leased")
    waiting = in_thread(lambda: buy(client, scope, call_of(), wait=timedelta(seconds=30)))
    observer.execute("select idem.http_complete(%s, 'k', %s, 201, body => 'first')", [scope, reserved.token])
    assert waiting.result().response.body == b"first"


def test_a_wait_may_end_with_the_work(
    client: Client, scope: str, observer: psycopg.Connection, orders: Count, in_thread: Callable[..., Any]
) -> None:
    reserved = client.http_reserve(scope, call_of(), mode="leased")
    waiting = in_thread(lambda: buy(client, scope, call_of(), wait=timedelta(seconds=30)))
    observer.execute("select idem.release(%s, 'k', %s)", [scope, reserved.token])
    assert waiting.result().verdict == "stored"
    assert orders(scope) == 1


def test_a_wait_is_bounded(client: Client, scope: str, observer: psycopg.Connection) -> None:
    reserved = client.http_reserve(scope, call_of(), mode="leased")
    for mode in (client.atomic, client.leased):
        with mode(scope, call_of(), wait=timedelta(milliseconds=100)) as op:
            assert op.outcome == "in_progress"
        assert op.response.status == 409
    observer.execute("select idem.release(%s, 'k', %s)", [scope, reserved.token])


def test_nothing_waits_inside_a_transaction_of_the_callers(client: Client, scope: str) -> None:
    lent = client.lend()
    with pytest.raises(TypeError, match="wait"):
        client.idem.atomic(scope, call_of(), wait=timedelta(1), on=lent, commit=True)
    with pytest.raises(ValueError, match="negative"):
        client.idem.leased(scope, call_of(), wait=timedelta(seconds=-1))


def test_a_wait_holds_no_connection(open_client: OpenClient, scope: str, in_thread: Callable[..., Any]) -> None:
    for name in ("sync-pool", "async-pool", "async-sessionmaker"):
        client = open_client(name, pool_size=1)
        key = call_of(name)
        reserved = client.http_reserve(scope, key, mode="leased")
        waiting = [in_thread(lambda c=client, k=key: buy(c, scope, k, wait=timedelta(seconds=30))) for _ in range(5)]
        for _ in range(20):
            assert client.lookup(scope, name).outcome == "in_progress"
        assert client.http_complete(scope, name, reserved.token, 201) == "stored"
        assert [waiter.result().outcome for waiter in waiting] == ["replay"] * 5


def test_the_owner_has_stored_the_answer_once(client: Client, scope: str) -> None:
    with pytest.raises(WrongMode, match="twice"), client.atomic(scope, call_of()) as op:
        op.complete(201)
        op.complete(201)


def test_a_missing_key_can_be_an_error(client: Client, scope: str, policies: None) -> None:  # noqa: ARG001
    with client.atomic(scope, call_of(None), policy="needs_key") as op, pytest.raises(KeyMissing):
        op.raise_for_outcome()

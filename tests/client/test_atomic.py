"""Atomic blocks: reservation, work and answer commit together, or nothing happened."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

from collections.abc import Callable

import psycopg
import pytest

from pyidem import (
    IdempotencyError,
    InProgress,
    KeyInvalid,
    KeyReused,
    NoSuchPolicy,
    NotCompleted,
    Response,
    WrongMode,
)
from pyidem._errors import sqlstate_of
from tests.client.flavours import Client, OpenClient

Count = Callable[[str], int]
ANSWER = Response(201, (("content-type", "application/json"),), b'{"id":1}')


def buy(client: Client, scope: str, **options: object) -> Response:
    """Insert an order under one key and return the answer, first or repeated."""
    with client.atomic(scope, "k", **options) as op:
        if op.started:
            client.insert(op.connection, scope)
            op.complete(201, {"id": 1})
    response = op.response
    assert isinstance(response, Response)
    return response


def test_a_retry_gets_the_same_answer_and_the_work_is_done_once(client: Client, scope: str, orders: Count) -> None:
    assert [buy(client, scope) for _ in range(3)] == [ANSWER] * 3
    assert orders(scope) == 1


def test_the_block_says_how_the_key_stands(client: Client, scope: str) -> None:
    with client.atomic(scope, "k") as op:
        assert (op.started, op.outcome, op.attempt, op.recovery_point, op.state) == (True, "started", 1, None, None)
        assert op.reservation.token == op.token
        assert op.session is op.connection
        op.complete()
    with client.atomic(scope, "k") as op:
        assert (op.started, op.outcome) == (False, "replay")
        assert op.reservation.token is None


def test_an_exception_rolls_back_and_frees_the_key(client: Client, scope: str, orders: Count) -> None:
    failure = RuntimeError("the work failed")
    with pytest.raises(RuntimeError) as raised, client.atomic(scope, "k") as op:
        client.insert(op.connection, scope)
        op.complete(201)
        raise failure
    assert raised.value is failure
    assert orders(scope) == 0
    assert client.lookup(scope, "k").outcome == "absent"
    assert buy(client, scope) == ANSWER


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), StopIteration(), GeneratorExit()])
def test_even_an_unusual_exception_passes_through_unchanged(
    open_client: OpenClient, scope: str, failure: BaseException
) -> None:
    client = open_client("sync-pool")
    with pytest.raises(type(failure)) as raised, client.idem.atomic(scope, "k"):
        raise failure
    assert raised.value is failure
    assert client.lookup(scope, "k").outcome == "absent"


def test_a_block_without_an_answer_is_an_error_and_rolls_back(client: Client, scope: str, orders: Count) -> None:
    with pytest.raises(NotCompleted, match=r"op\.complete"), client.atomic(scope, "k") as op:
        client.insert(op.connection, scope)
    assert orders(scope) == 0
    assert client.lookup(scope, "k").outcome == "absent"


def test_an_error_of_the_work_leaves_the_source_usable(client: Client, scope: str) -> None:
    for _ in range(5):
        with pytest.raises(Exception, match=r"division by zero|Division durch Null"), client.atomic(scope, "k") as op:
            client.execute(op.connection, "select 1 / 0")
    assert buy(client, scope) == ANSWER


def test_an_error_at_commit_is_raised_and_nothing_is_stored(client: Client, scope: str) -> None:
    for _ in range(5):
        with pytest.raises(Exception, match="_fkey"), client.atomic(scope, "k") as op:
            client.execute(op.connection, "insert into invoices values (-1)")
            op.complete(201)
    assert client.lookup(scope, "k").outcome == "absent"
    assert buy(client, scope) == ANSWER


def test_another_request_under_the_same_key_is_refused(client: Client, scope: str, orders: Count) -> None:
    buy(client, scope, fingerprint=b"one", fields={"/amount": "a", "/to": "b"})
    with client.atomic(scope, "k", fingerprint=b"two", fields={"/amount": "x", "/to": "b"}) as op:
        assert not op.started
        assert op.mismatched == ["/amount"]
    with pytest.raises(KeyReused) as raised:
        _ = op.response
    assert raised.value.mismatched == ["/amount"]
    assert raised.value.problem == {
        "type": "about:blank",
        "title": "Idempotency key reused",
        "status": 422,
        "detail": "This key belongs to another request. An attempt repeats the request exactly; another operation, or a"
        " corrected request, takes a new key.",
        "code": "idempotency_key_reused",
        "mismatched": ["/amount"],
    }
    assert orders(scope) == 1


def test_a_running_attempt_is_seen_without_waiting(
    client: Client, scope: str, observer: psycopg.Connection, orders: Count
) -> None:
    observer.execute("set statement_timeout = '5s'")
    with observer.transaction(force_rollback=True):
        observer.execute("select from idem.reserve(%s, 'k')", [scope])
        with client.atomic(scope, "k") as op:
            assert op.outcome == "in_progress"
        with pytest.raises(InProgress) as raised:
            op.raise_for_outcome()
        assert raised.value.retry_after is not None
        assert raised.value.retry_after == op.retry_after
    assert orders(scope) == 0


def test_every_outcome_leaves_the_transaction_usable(client: Client, scope: str, orders: Count) -> None:
    buy(client, scope, fingerprint=b"one")
    lent = client.lend()
    client.insert(lent, scope + "-before")
    with client.atomic(scope, "k", fingerprint=b"two", on=lent, commit=False) as op:
        assert op.outcome == "mismatch"
    client.insert(lent, scope + "-after")
    client.finish(lent.commit())
    assert (orders(scope + "-before"), orders(scope + "-after")) == (1, 1)


def test_joined_and_told_to_commit_the_block_ends_the_transaction(client: Client, scope: str, orders: Count) -> None:
    lent = client.lend()
    client.insert(lent, scope)
    with client.atomic(scope, "k", on=lent, commit=True) as op:
        assert op.connection is lent
        op.complete(201)
    assert op.response == Response(201)
    assert orders(scope) == 1


def test_joined_and_told_not_to_commit_the_caller_ends_the_transaction(
    client: Client, scope: str, orders: Count
) -> None:
    lent = client.lend()
    for end, expected in (("rollback", 0), ("commit", 1)):
        with client.atomic(scope, "k", on=lent, commit=False) as op:
            assert op.started
            client.insert(lent, scope)
            op.complete(201)
        assert orders(scope) == 0
        client.finish(getattr(lent, end)())
        assert orders(scope) == expected


def test_an_exception_in_a_joined_block_that_commits_rolls_back(client: Client, scope: str, orders: Count) -> None:
    lent = client.lend()
    client.insert(lent, scope)
    with pytest.raises(NotCompleted), client.atomic(scope, "k", on=lent, commit=True):
        pass
    client.finish(lent.commit())
    assert orders(scope) == 0


def test_a_joined_block_that_failed_cannot_be_committed_by_mistake(client: Client, scope: str, orders: Count) -> None:
    lent = client.lend()
    with pytest.raises(NotCompleted), client.atomic(scope, "k", on=lent, commit=False):
        client.insert(lent, scope)
    with pytest.raises(Exception, match=r"not completed|without being completed") as raised:
        client.finish(lent.commit())
    assert sqlstate_of(raised.value) == "IK005"
    client.finish(lent.rollback())
    assert orders(scope) == 0


def test_joining_requires_to_say_who_commits(client: Client, scope: str) -> None:
    with pytest.raises(TypeError, match="commit=True"):
        client.idem.atomic(scope, "k", on=client.lend())
    with pytest.raises(TypeError, match="on="):
        client.idem.atomic(scope, "k", commit=True)


@pytest.mark.parametrize("name", ["sync-connection", "async-connection"])
def test_joining_refuses_autocommit_outside_a_transaction(open_client: OpenClient, scope: str, name: str) -> None:
    client = open_client(name)
    client.finish(client.origin.set_autocommit(True)) if client.asynchronous else setattr(
        client.origin, "autocommit", True
    )
    with pytest.raises(WrongMode, match="autocommit"), client.atomic(scope, "k", on=client.origin, commit=False):
        pass
    with client.block(client.origin.transaction), client.atomic(scope, "k", on=client.origin, commit=False) as op:
        op.complete(204)
    assert client.lookup(scope, "k").outcome == "completed"


@pytest.mark.parametrize("name", ["sync-connection", "async-connection"])
def test_a_connection_inside_a_transaction_is_not_taken_over(open_client: OpenClient, scope: str, name: str) -> None:
    client = open_client(name)
    client.execute(client.origin, "select 1")
    with pytest.raises(WrongMode, match="already in a transaction"), client.atomic(scope, "k"):
        pass
    client.finish(client.origin.rollback())
    assert buy(client, scope) == ANSWER


@pytest.mark.parametrize("name", ["sync-connection", "async-connection"])
def test_a_connection_in_autocommit_mode_serves_a_block_of_its_own(
    open_client: OpenClient, scope: str, name: str, orders: Count
) -> None:
    client = open_client(name)
    client.finish(client.origin.set_autocommit(True)) if client.asynchronous else setattr(
        client.origin, "autocommit", True
    )
    with pytest.raises(NotCompleted), client.atomic(scope, "k") as op:
        client.insert(op.connection, scope)
    assert orders(scope) == 0
    assert buy(client, scope) == ANSWER


def test_committing_inside_the_block_is_refused(client: Client, scope: str, orders: Count) -> None:
    with pytest.raises(Exception, match=r"[Cc]ommit|not completed") as raised, client.atomic(scope, "k") as op:
        client.insert(op.connection, scope)
        client.finish(op.connection.commit())
    refused = isinstance(raised.value, psycopg.ProgrammingError | WrongMode)
    assert refused or sqlstate_of(raised.value) == "IK005"
    assert orders(scope) == 0
    assert buy(client, scope) == ANSWER


def test_only_the_owner_may_complete(client: Client, scope: str) -> None:
    buy(client, scope)
    with pytest.raises(WrongMode, match="does not own") as raised, client.atomic(scope, "k") as op:
        op.complete(201)
    assert raised.value.hint == "Look at op.started before doing the work."
    assert raised.value.__notes__ == [raised.value.hint]


def test_completing_twice_is_an_error(client: Client, scope: str, orders: Count) -> None:
    with pytest.raises(WrongMode, match="twice"), client.atomic(scope, "k") as op:
        client.insert(op.connection, scope)
        op.complete(201)
        op.complete(201)
    assert orders(scope) == 0


def test_there_is_no_response_and_no_connection_at_the_wrong_time(client: Client, scope: str) -> None:
    with client.atomic(scope, "k") as op:
        op.complete(201)
        with pytest.raises(NotCompleted):
            _ = op.response
    with pytest.raises(WrongMode, match="has ended"):
        _ = op.connection
    with pytest.raises(WrongMode, match="has ended"):
        op.complete(201)


def test_a_block_is_good_for_one_attempt(open_client: OpenClient, scope: str) -> None:
    client = open_client("sync-pool")
    block = client.idem.atomic(scope, "k")
    with block as op:
        op.complete(201)
    with pytest.raises(RuntimeError, match="once only"), block:
        pytest.fail("the block was entered again")


def test_a_server_side_cursor_works_inside_a_block(open_client: OpenClient, scope: str) -> None:
    client = open_client("sync-connection")
    with client.idem.atomic(scope, "k") as op:
        with op.connection.cursor("named") as cursor:
            cursor.execute("select generate_series(1, 3)")
            assert cursor.fetchall() == [(1,), (2,), (3,)]
        with op.connection.transaction(force_rollback=True):
            client.insert(op.connection, scope)
        op.complete(204)
    assert client.origin.autocommit is False


def test_downstream_keys_are_stable_and_differ_by_step(client: Client, scope: str) -> None:
    seen = []
    with pytest.raises(NotCompleted), client.atomic(scope, "k") as op:
        seen.append((op.downstream_key(), client.finish(op.downstream_key_for("mail"))))
    with client.atomic(scope, "k") as op:
        seen.append((op.downstream_key(), client.finish(op.downstream_key_for("mail"))))
        op.complete(204)
    assert seen[0] == seen[1]
    assert len({*seen[0]}) == 2
    assert seen[0] == (client.downstream_key(scope, "k"), client.downstream_key(scope, "k", "mail"))


@pytest.mark.parametrize("key", ["", " ", "k" * 256, "\x01", "caf\xe9", '"quoted"', "nul\0", "\ud800"])
def test_a_bad_key_is_refused_at_entry(open_client: OpenClient, scope: str, key: str) -> None:
    client = open_client("sync-pool")
    with pytest.raises(KeyInvalid) as raised, client.atomic(scope, key):
        pytest.fail("the block was entered")
    assert raised.value.detail["argument"] == "key"
    assert raised.value.problem is not None
    assert raised.value.problem["code"] == "idempotency_key_invalid"


def test_a_scope_is_required(client: Client) -> None:
    with pytest.raises(KeyInvalid) as raised, client.atomic(None, "k"):
        pytest.fail("the block was entered")
    assert raised.value.sqlstate == "IK001"
    assert raised.value.__cause__ is not None
    assert sqlstate_of(raised.value.__cause__) == "IK001"


def test_an_unknown_policy_is_named_as_such(client: Client, scope: str) -> None:
    with pytest.raises(NoSuchPolicy) as raised, client.atomic(scope, "k", policy="no such policy"):
        pytest.fail("the block was entered")
    assert isinstance(raised.value, IdempotencyError)
    assert raised.value.sqlstate == "IK006"
    assert raised.value.hint


def test_the_outcome_is_known_without_the_data_being_there(client: Client, scope: str) -> None:
    assert client.lookup(scope, "never used").outcome == "absent"


def test_a_serialization_failure_at_entry_is_tried_again(
    open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client("sync-pool")
    # a stand-in for a row that another transaction commits after the snapshot: the first two tries fail
    observer.execute("create sequence tries")
    observer.execute(
        "create function fail_twice() returns trigger language plpgsql security definer as $$begin "
        "if nextval('public.tries') < 3 then raise exception 'again' using errcode = '40001'; end if; "
        "return new; end$$"
    )
    observer.execute(
        "create trigger fail_twice before insert on idem_private.reservation for each row "
        f"when (new.scope = '{scope}') execute function fail_twice()"
    )
    try:
        assert buy(client, scope) == ANSWER
    finally:
        observer.execute("drop function fail_twice cascade; drop sequence tries")

"""Leased blocks: reserve and commit, act outside, then write the answer with the business row."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, timedelta
from uuid import uuid4

import psycopg
import pytest

from pyidem import (
    InProgress,
    LostReservation,
    NoSuchReservation,
    NotCompleted,
    OutcomeUnknown,
    Response,
    WrongMode,
)
from tests.client.flavours import FLAVOURS, Client, OpenClient, hide_failure_before_commit
from tests.support.database import Database, advance_clock

Count = Callable[[str], int]


def buy(client: Client, scope: str, **options: object) -> Response:
    """Place an order with an outside effect in between, and return the answer."""
    with client.leased(scope, "k", **options) as op:
        if op.started:
            with client.block(op.transaction) as connection:
                client.insert(connection, scope)
                op.complete(201, {"id": 1})
    response = op.response
    assert isinstance(response, Response)
    return response


def test_a_retry_gets_the_same_answer_and_the_work_is_done_once(client: Client, scope: str, orders: Count) -> None:
    answer = Response(201, (("content-type", "application/json"),), b'{"id":1}')
    assert [buy(client, scope) for _ in range(3)] == [answer] * 3
    assert orders(scope) == 1


def test_the_reservation_is_committed_before_the_work(client: Client, scope: str, observer: psycopg.Connection) -> None:
    with client.leased(scope, "k", lease=timedelta(minutes=5), state={"amount": 7}) as op:
        assert (op.started, op.attempt, op.state) == (True, 1, {"amount": 7})
        row = observer.execute("select outcome, lease_until from idem.lookup(%s, 'k')", [scope]).fetchone()
        assert row == ("in_progress", op.reservation.lease_until)
        assert row[1].tzinfo is not None
        op.complete()


def test_the_business_write_and_the_answer_commit_together(client: Client, scope: str, orders: Count) -> None:
    with client.leased(scope, "k") as op, client.block(op.transaction) as connection:
        client.insert(connection, scope)
        op.complete(201)
        assert (orders(scope), client_outcome(client, scope)) == (0, "in_progress")
        with pytest.raises(NotCompleted):
            _ = op.response
    assert (orders(scope), client_outcome(client, scope)) == (1, "completed")


@pytest.mark.own_surroundings
def test_the_transaction_is_read_committed_whatever_the_default(open_client: OpenClient, scope: str) -> None:
    for name in ("sync-pool", "async-sessionmaker"):
        client = open_client(name, options="-c default_transaction_isolation=serializable")
        with client.leased(scope, name) as op, client.block(op.transaction) as connection:
            assert client.execute(connection, "show transaction_isolation") == [("read committed",)]
            op.complete(204)


def test_an_answer_given_outside_a_transaction_is_stored_when_the_block_ends(client: Client, scope: str) -> None:
    with client.leased(scope, "k") as op:
        op.complete(202, "accepted", [("x-a", "1"), ("x-a", "2")])
        assert client_outcome(client, scope) == "in_progress"
    assert op.response == Response(202, (("x-a", "1"), ("x-a", "2")), b"accepted")
    with client.leased(scope, "k") as op:
        assert op.outcome == "replay"
    assert op.response == Response(202, (("x-a", "1"), ("x-a", "2")), b"accepted")


def test_an_exception_leaves_the_outcome_unknown(client: Client, scope: str, orders: Count) -> None:
    failure = ConnectionError("the provider hung up")
    with pytest.raises(ConnectionError) as raised, client.leased(scope, "k"):
        raise failure
    assert raised.value is failure
    assert client_outcome(client, scope) == "lapsed"
    with pytest.raises(OutcomeUnknown) as unknown:
        buy(client, scope)
    assert unknown.value.problem is not None
    assert unknown.value.problem["code"] == "idempotency_outcome_unknown"
    assert unknown.value.retry_after is not None
    assert orders(scope) == 0


def test_an_exception_after_an_answer_outside_a_transaction_stores_nothing(client: Client, scope: str) -> None:
    with pytest.raises(ZeroDivisionError), client.leased(scope, "k") as op:
        op.complete(201)
        raise ZeroDivisionError
    assert client_outcome(client, scope) == "lapsed"


def test_leaving_without_an_answer_leaves_the_outcome_unknown(client: Client, scope: str) -> None:
    with client.leased(scope, "k") as op:
        pass
    assert client_outcome(client, scope) == "lapsed"
    with pytest.raises(OutcomeUnknown):
        _ = op.response


def test_an_exception_after_the_commit_does_not_undo_the_answer(client: Client, scope: str, orders: Count) -> None:
    with pytest.raises(ZeroDivisionError) as raised, client.leased(scope, "k") as op:
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201)
        raise ZeroDivisionError
    assert getattr(raised.value, "__notes__", []) == []
    assert client_outcome(client, scope) == "completed"
    assert orders(scope) == 1


def test_a_transaction_that_fails_takes_its_answer_back(client: Client, scope: str, orders: Count) -> None:
    with client.leased(scope, "k") as op:
        with pytest.raises(Exception, match="_fkey"), client.block(op.transaction) as connection:
            client.insert(connection, scope)
            client.execute(connection, "insert into invoices values (-1)")
            op.complete(201, "first")
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201, "second")
    assert op.response.body == b"second"
    assert orders(scope) == 1


def test_a_transaction_may_write_without_completing(client: Client, scope: str, orders: Count) -> None:
    with client.leased(scope, "k") as op:
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
        assert (orders(scope), client_outcome(client, scope)) == (1, "in_progress")
        op.complete(204)
    assert client_outcome(client, scope) == "completed"


def test_repeated_work_is_rolled_back_and_counts_as_success(
    client: Client, scope: str, orders: Count, observer: psycopg.Connection
) -> None:
    with client.leased(scope, "k") as op, client.block(op.transaction) as connection:
        client.insert(connection, scope)
        # an earlier transaction of this attempt whose acknowledgement was lost
        observer.execute("select idem.complete(%s, 'k', %s, 201, null, 'done')", [scope, op.token])
        op.complete(201, "done")
    assert op.response == Response(201, (), b"done")
    assert orders(scope) == 0


def test_a_late_owner_changes_nothing(client: Client, scope: str, orders: Count, observer: psycopg.Connection) -> None:
    with pytest.raises(LostReservation) as raised, client.leased(scope, "k") as op:
        taken_over(observer, scope)
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201)
    assert raised.value.sqlstate == "IK002"
    assert raised.value.detail["code"] == "not_the_owner"
    assert orders(scope) == 0
    assert client_outcome(client, scope) == "in_progress"


def test_an_owner_that_was_overtaken_cannot_extend_defer_or_release(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    with pytest.raises(ZeroDivisionError) as raised, client.leased(scope, "k") as op:
        taken_over(observer, scope)
        for call in (op.extend, op.defer, op.release):
            with pytest.raises(LostReservation):
                client.finish(call())
        raise ZeroDivisionError
    assert "LostReservation" in raised.value.__notes__[0]
    assert str(op.token) not in raised.value.__notes__[0]


def test_a_taken_over_reservation_comes_with_what_the_first_owner_left(
    client: Client, scope: str, policy_retry: str
) -> None:
    with client.leased(scope, "k", policy=policy_retry, state=[1, {"a": None}]) as first:
        client.finish(first.defer())
    with client.leased(scope, "k", policy=policy_retry) as second:
        assert (second.started, second.attempt, second.state) == (True, 2, [1, {"a": None}])
        assert second.downstream_key() == first.downstream_key()
        second.complete()
    with pytest.raises(OutcomeUnknown):
        _ = first.response


def test_released_the_key_may_run_again_at_once(client: Client, scope: str) -> None:
    with client.leased(scope, "k") as op:
        client.finish(op.release())
        with pytest.raises(WrongMode, match="released"):
            op.complete(201)
    with pytest.raises(NotCompleted, match="released"):
        _ = op.response
    assert client_outcome(client, scope) == "absent"
    assert buy(client, scope).status == 201


def test_extending_says_when_the_lease_ends(client: Client, scope: str) -> None:
    with client.leased(scope, "k", lease=timedelta(minutes=1)) as op:
        until = client.finish(op.extend(timedelta(hours=1)))
        assert until.tzinfo is not None
        assert until.astimezone(UTC) > op.reservation.lease_until + timedelta(minutes=50)
        assert client.lookup(scope, "k").lease_until == until
        op.complete()


def test_an_attempt_that_does_not_own_the_key_can_do_nothing(client: Client, scope: str) -> None:
    with client.leased(scope, "k") as owner:
        with client.leased(scope, "k") as other:
            assert other.outcome == "in_progress"
            with pytest.raises(WrongMode), client.block(other.transaction):
                pytest.fail("the transaction was opened")
            for call in (other.extend, other.defer, other.release):
                with pytest.raises(WrongMode):
                    client.finish(call())
            with pytest.raises(WrongMode):
                other.complete(201)
            with pytest.raises(WrongMode):
                other.downstream_key()
        with pytest.raises(InProgress):
            _ = other.response
        owner.complete(200)
    assert owner.response.status == 200


def test_no_connection_is_held_while_the_work_runs(open_client: OpenClient, scope: str) -> None:
    for name in ("sync-pool", "sync-engine", "sync-sessionmaker", "async-pool", "async-engine", "async-sessionmaker"):
        client = open_client(name, pool_size=1)
        with client.leased(scope, name) as op:
            with client.atomic(scope, name + "-inner") as inner:
                inner.complete()
            with client.block(op.transaction):
                op.complete()
        assert client.lookup(scope, name).outcome == "completed"


def test_a_connection_inside_a_transaction_is_refused(client: Client, scope: str) -> None:
    lent = client.lend()
    client.execute(lent, "select 1")
    with pytest.raises(WrongMode, match="already in a transaction"), client.leased(scope, "k", on=lent):
        pytest.fail("the block was entered")
    client.finish(lent.rollback())
    assert client_outcome(client, scope) == "absent"


def test_a_lent_connection_serves_the_whole_protocol(client: Client, scope: str, orders: Count) -> None:
    lent = client.lend()
    with client.leased(scope, "k", on=lent) as op, client.block(op.transaction) as connection:
        assert connection is lent
        client.insert(connection, scope)
        op.complete(201)
    assert op.response.status == 201
    assert orders(scope) == 1


def test_a_test_suite_may_run_it_all_in_one_transaction(client: Client, scope: str, orders: Count) -> None:
    lent = client.lend()
    client.execute(lent, "select set_config('idem.single_transaction', 'on', true)")
    for expected in ("started", "replay"):
        with client.leased(scope, "k", on=lent) as op:
            assert op.outcome == expected
            if op.started:
                with client.block(op.transaction) as connection:
                    client.insert(connection, scope)
                    op.complete(201)
        assert op.response.status == 201
    assert client.execute(lent, f"select count(*) from orders where name = '{scope}'") == [(1,)]
    client.finish(lent.rollback())
    assert orders(scope) == 0
    assert client_outcome(client, scope) == "absent"


def test_a_killed_process_leaves_a_key_that_lapses(client_db: Database, scope: str) -> None:
    script = (
        "import sys, psycopg, pyidem\n"
        "idem = pyidem.Idem(psycopg.connect(sys.argv[1]))\n"
        "with idem.leased(sys.argv[2], 'k'):\n"
        "    print('reserved', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, client_db.dsn, scope], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reserved\n"
        process.send_signal(signal.SIGKILL)
    with psycopg.connect(client_db.dsn, autocommit=True) as connection:
        assert reserve_outcome(connection, scope) == "in_progress"
        advance_clock(connection, timedelta(seconds=61))
        assert reserve_outcome(connection, scope) == "unresolved"


@pytest.mark.parametrize("lease", [timedelta(0), timedelta(seconds=-1)])
def test_a_lease_of_no_length_is_a_bad_argument(open_client: OpenClient, scope: str, lease: timedelta) -> None:
    client = open_client("sync-pool")
    with pytest.raises(psycopg.errors.InvalidParameterValue), client.leased(scope, "k", lease=lease):
        pytest.fail("the block was entered")


def test_a_repeated_call_with_the_same_token_is_as_if_made_once(client: Client, scope: str) -> None:
    token = uuid4()
    for _ in range(2):
        assert client.reserve(scope, "k", mode="leased", token=token).outcome == "started"
    assert client.reserve(scope, "k", mode="leased").outcome == "in_progress"
    answer = {"status": 201, "headers": [("a", "b")], "body": {"id": 1}}
    assert [client.complete(scope, "k", token, **answer) for _ in range(2)] == [True, False]
    with pytest.raises(LostReservation):
        client.complete(scope, "k", token, status=500)
    assert client.lookup(scope, "k").status == 201


def test_each_sql_function_can_be_called_by_itself(client: Client, scope: str) -> None:
    token = client.reserve(scope, "k", mode="leased").token
    assert client.extend(scope, "k", token, lease=timedelta(hours=1)) == client.lookup(scope, "k").lease_until
    assert client.defer(scope, "k", token, retry_in=timedelta(minutes=1), reason="testing") is True
    assert client.lookup(scope, "k").outcome == "lapsed"
    assert client.release(scope, "k", token) is True
    with pytest.raises(NoSuchReservation):
        client.release(scope, "k", token)
    lent = client.lend()
    token = client.reserve(scope, "k", on=lent).token
    assert client.complete(scope, "k", token, status=204, on=lent) is True
    assert client.lookup(scope, "k", on=lent).outcome == "completed"
    client.finish(lent.rollback())
    assert client.lookup(scope, "k").outcome == "absent"


def test_an_owner_that_has_lost_the_key_says_so_and_nothing_else(
    client: Client, scope: str, observer: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(LostReservation) as raised, client.leased(scope, "k") as op:
        taken_over(observer, scope)
        with client.block(op.transaction):
            op.complete(201)
    notes = getattr(raised.value, "__notes__", [])
    assert notes == [raised.value.hint]
    assert caplog.records == []


def test_a_short_lease_keeps_its_unit(open_client: OpenClient, scope: str) -> None:
    client = open_client("sync-pool")
    with client.leased(scope, "k", lease=timedelta(milliseconds=1)) as op:
        assert op.reservation.lease_until - op.reservation.created_at == timedelta(milliseconds=1)
        op.complete()


@pytest.fixture
def policy_retry(observer: psycopg.Connection) -> str:
    """A policy under which the next attempt takes over what has lapsed."""
    name = f"retry-{uuid4()}"
    observer.execute("insert into idem.policies (name, on_lapse) values (%s, 'retry')", [name])
    return name


def taken_over(observer: psycopg.Connection, scope: str) -> None:
    """Let another attempt own the key, as after a lapse."""
    observer.execute("update idem_private.reservation set token = gen_random_uuid() where scope = %s", [scope])


def client_outcome(client: Client, scope: str) -> str:
    """Return the outcome that anybody sees, without disturbing a connection in use."""
    with psycopg.connect(client.dsn, autocommit=True) as connection:
        row = connection.execute("select outcome from idem.lookup(%s, 'k')", [scope]).fetchone()
    assert row is not None
    return str(row[0])


def reserve_outcome(connection: psycopg.Connection, scope: str) -> str:
    """Reserve by SQL and return the outcome."""
    row = connection.execute("select outcome from idem.reserve(%s, 'k', mode => 'leased')", [scope]).fetchone()
    assert row is not None
    return str(row[0])


def test_an_answer_is_not_stored_without_the_work_that_was_rolled_back(
    client: Client, scope: str, orders: Count
) -> None:
    def rolled_back() -> None:
        with client.leased(scope, "k") as op, client.block(op.transaction) as connection:
            client.insert(connection, scope)
            if client.source in {"connection", "pool"}:
                client.execute(connection, "rollback")
            else:
                client.finish(connection.rollback())
            op.complete(201)

    with pytest.raises(NotCompleted, match="rolled back inside"):
        rolled_back()
    assert (orders(scope), client.lookup(scope, "k").outcome) == (0, "lapsed")


@pytest.mark.parametrize("name", [name for name in FLAVOURS if name.endswith("sessionmaker")])
def test_a_hook_that_hides_a_failed_statement_has_not_stored_the_answer(
    open_client: OpenClient, scope: str, orders: Count, name: str
) -> None:
    client = open_client(name)

    def committed() -> None:
        with client.leased(scope, "k") as op, client.block(op.transaction) as session:
            client.insert(session, scope)
            op.complete(201)
            hide_failure_before_commit(session)

    with pytest.raises(NotCompleted, match="rolled back inside"):
        committed()
    assert (orders(scope), client.lookup(scope, "k").outcome) == (0, "lapsed")

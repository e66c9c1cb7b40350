"""Checkpoints: a step that is done commits with what it wrote, and the next attempt goes on from there."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

import contextlib
import copy
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from pyidem import LostReservation, WrongMode
from tests.client.flavours import Client, OpenClient
from tests.client.test_heartbeat import OFTEN, SHARED, wait_for_a_beat
from tests.client.test_leased import client_outcome, taken_over
from tests.support.database import Database
from tests.support.waiting import Background, wait_until

Count = Callable[[str], int]


@pytest.fixture
def policy_retry(observer: psycopg.Connection) -> str:
    """A policy under which the next attempt takes over what has lapsed."""
    name = f"retry-{uuid4()}"
    observer.execute("insert into idem.policies (name, on_lapse) values (%s, 'retry')", [name])
    return name


def lease_until(observer: psycopg.Connection, scope: str) -> datetime:
    """Return when the lease ends."""
    row = observer.execute("select lease_until from idem.lookup(%s, 'k')", [scope]).fetchone()
    assert row is not None
    assert isinstance(row[0], datetime)
    return row[0]


def charge(client: Client, op: Any, scope: str, state: Any = None) -> None:
    """Do the first step: write an order and reach a checkpoint."""
    with client.block(op.transaction) as connection:
        client.insert(connection, scope)
        op.checkpoint("charged", state)


def test_a_checkpoint_commits_with_the_write_and_the_operation_goes_on(
    client: Client, scope: str, orders: Count
) -> None:
    with client.leased(scope, "k") as op:
        charge(client, op, scope)
        assert (orders(scope), client_outcome(client, scope)) == (1, "in_progress")
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201)
    assert op.response.status == 201
    assert orders(scope) == 2


def test_the_next_attempt_goes_on_from_the_checkpoint(client: Client, scope: str, policy_retry: str) -> None:
    with pytest.raises(ZeroDivisionError), client.leased(scope, "k", policy=policy_retry, state={"amount": 7}) as op:
        charge(client, op, scope, {"charge": "ch_1", "lines": (1, 2)})
        raise ZeroDivisionError
    with client.leased(scope, "k", policy=policy_retry) as op:
        assert (op.attempt, op.recovery_point) == (2, "charged")
        assert op.state == {"charge": "ch_1", "lines": [1, 2]}
        op.complete(201)


def test_the_attempt_itself_sees_what_the_next_one_would(client: Client, scope: str) -> None:
    with client.leased(scope, "k", state={"amount": 7}) as op:
        with client.block(op.transaction):
            op.checkpoint("validated")
            assert op.recovery_point is None
        assert (op.recovery_point, op.state) == ("validated", {"amount": 7})
        with client.block(op.transaction):
            op.checkpoint("charged", {"lines": (1, 2)})
        assert (op.recovery_point, op.state) == ("charged", {"lines": [1, 2]})
        op.complete()


def test_a_transaction_that_fails_reaches_nothing(client: Client, scope: str, orders: Count) -> None:
    with client.leased(scope, "k") as op:
        with pytest.raises(ZeroDivisionError), client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.checkpoint("charged")
            raise ZeroDivisionError
        assert (op.recovery_point, orders(scope)) == (None, 0)
        charge(client, op, scope)
        assert (op.recovery_point, orders(scope)) == ("charged", 1)
        op.complete()


def test_the_lease_is_renewed(client: Client, scope: str, observer: psycopg.Connection) -> None:
    with client.leased(scope, "k", lease=timedelta(minutes=10)) as op:
        charge(client, op, scope)
        assert lease_until(observer, scope) > op.reservation.lease_until
        op.complete()


def test_repeated_work_is_rolled_back_and_counts_as_success(client: Client, scope: str, orders: Count) -> None:
    with client.leased(scope, "k") as op:
        for _ in range(3):
            charge(client, op, scope, {"charge": "ch_1"})
        assert (op.recovery_point, op.state) == ("charged", {"charge": "ch_1"})
        op.complete()
    assert orders(scope) == 1


def test_the_same_point_with_another_state_is_refused_and_the_first_stays(
    client: Client, scope: str, orders: Count
) -> None:
    with client.leased(scope, "k") as op:
        charge(client, op, scope, {"charge": "ch_1"})
        with pytest.raises(LostReservation, match="another state"):
            charge(client, op, scope, {"charge": "ch_2"})
        assert op.state == {"charge": "ch_1"}
        op.complete()
    assert orders(scope) == 1


def test_with_an_answer_in_the_same_transaction_only_the_answer_is_stored(
    client: Client, scope: str, orders: Count
) -> None:
    with client.leased(scope, "k") as op:
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.checkpoint("charged")
            op.complete(201)
        assert op.recovery_point is None
    assert (client_outcome(client, scope), orders(scope)) == ("completed", 1)


def test_leaving_after_a_checkpoint_without_an_answer_defers_and_keeps_it(
    client: Client, scope: str, policy_retry: str
) -> None:
    with client.leased(scope, "k", policy=policy_retry) as op:
        charge(client, op, scope)
    assert client_outcome(client, scope) == "lapsed"
    with client.leased(scope, "k", policy=policy_retry) as op:
        assert (op.started, op.recovery_point) == (True, "charged")
        op.complete()


def test_a_late_owner_reaches_nothing(client: Client, scope: str, orders: Count, observer: psycopg.Connection) -> None:
    with pytest.raises(LostReservation), client.leased(scope, "k") as op:
        taken_over(observer, scope)
        charge(client, op, scope)
    assert orders(scope) == 0


def test_outside_a_transaction_it_is_refused(client: Client, scope: str) -> None:
    with client.leased(scope, "k") as op:
        with pytest.raises(WrongMode, match="belongs into"):
            op.checkpoint("charged")
        charge(client, op, scope)
        with pytest.raises(WrongMode, match="belongs into"):
            op.checkpoint("shipped")
        op.complete()


def test_only_the_owner_may_reach_one(client: Client, scope: str) -> None:
    with client.leased(scope, "k") as op:
        op.complete()
    with client.leased(scope, "k") as op, pytest.raises(WrongMode, match="does not own"):
        op.checkpoint("charged")


def test_two_in_one_transaction_are_refused_since_their_repetition_would_not_be_found(
    client: Client, scope: str
) -> None:
    with client.leased(scope, "k") as op:
        with pytest.raises(WrongMode, match="twice"), client.block(op.transaction):
            op.checkpoint("charged")
            op.checkpoint("shipped")
        assert op.recovery_point is None
        op.complete()


@pytest.mark.parametrize("state", [float("nan"), object(), {"a": "\ud800"}])
def test_a_state_that_cannot_be_stored_is_refused_at_once(open_client: OpenClient, scope: str, state: Any) -> None:
    client = open_client("sync-pool")
    with client.leased(scope, "k") as op:
        with pytest.raises((TypeError, ValueError)), client.block(op.transaction):
            op.checkpoint("charged", state)
        op.complete()


@pytest.mark.parametrize("point", ["", "  ", "x" * 256])
def test_a_point_without_a_usable_name_is_a_bad_argument(client: Client, scope: str, point: str) -> None:
    with client.leased(scope, "k") as op:
        with pytest.raises(Exception, match="recovery_point must be a name"), client.block(op.transaction):
            op.checkpoint(point)
        op.complete()


@pytest.mark.parametrize("name", SHARED)
def test_one_transaction_at_a_time(open_client: OpenClient, scope: str, name: str) -> None:
    client = open_client(name)
    with client.leased(scope, "k") as op:
        with client.block(op.transaction):
            op.checkpoint("charged")
            with pytest.raises(WrongMode, match="transaction open"), client.block(op.transaction):
                pytest.fail("the transaction was opened")
        assert op.recovery_point == "charged"
        op.complete()


@pytest.mark.parametrize("name", SHARED)
def test_the_heartbeat_pauses_for_the_checkpoint_and_goes_on(
    open_client: OpenClient, scope: str, name: str, observer: psycopg.Connection
) -> None:
    client = open_client(name, pool_size=3)
    with client.leased(scope, "k", heartbeat=OFTEN) as op:
        for number in range(20):
            with client.block(op.transaction) as connection:
                client.insert(connection, scope)
                op.checkpoint(f"step {number}")
        wait_for_a_beat(observer, scope)
        assert not op.lost
        op.complete()
    assert client_outcome(client, scope) == "completed"


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("step", ["answer", "checkpoint"])
def test_nothing_beats_while_that_which_locks_the_row_commits(
    open_client: OpenClient,
    scope: str,
    client_db: Database,
    in_thread: Callable[[Callable[[], None]], Background[None]],
    *,
    name: str,
    step: str,
) -> None:
    client = open_client(name, pool_size=3)
    holder = client_db.connect(autocommit=True)

    def take() -> None:
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201) if step == "answer" else op.checkpoint("charged")

    with client.leased(scope, "k", heartbeat=OFTEN) as op:
        with holder.transaction():
            holder.execute("select pg_advisory_xact_lock(4711)")
            taking = in_thread(take)
            wait_until(lambda: has_ended(op._heartbeat), "the heartbeat to end")
            assert not taking.done()
        taking.result()
        if step == "checkpoint":
            op.complete(201)
    assert op.response.status == 201


def lose_next_commit(client: Client, op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next COMMIT of this operation succeed and its acknowledgement be lost; none of its heartbeat's."""
    opened = op.source.open
    if op._heartbeat is not None:
        monkeypatch.setattr(op._heartbeat, "_source", copy.copy(op.source))

    def spoil(unit: Any) -> Any:
        commit = unit.commit

        def lose(*arguments: Any) -> None:
            commit(*arguments)
            raise psycopg.OperationalError("the connection was lost")

        async def lose_async(*arguments: Any) -> None:
            await commit(*arguments)
            raise psycopg.OperationalError("the connection was lost")

        unit.commit = lose_async if client.asynchronous else lose
        monkeypatch.setattr(op.source, "open", opened)
        return unit

    async def open_async() -> Any:
        return spoil(await opened())

    monkeypatch.setattr(op.source, "open", open_async if client.asynchronous else lambda: spoil(opened()))


@pytest.mark.parametrize("step", ["answer", "checkpoint"])
def test_after_a_lost_commit_the_same_attempt_runs_it_again_and_succeeds(
    client: Client, scope: str, orders: Count, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def take() -> None:
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.complete(201, {"id": 1}) if step == "answer" else op.checkpoint("charged", {"id": 1})

    with client.leased(scope, "k") as op:
        lose_next_commit(client, op, monkeypatch)
        with pytest.raises(psycopg.OperationalError):
            take()
        assert (orders(scope), op.recovery_point) == (1, None)
        take()
        assert orders(scope) == 1
        if step == "checkpoint":
            assert (op.recovery_point, op.state) == ("charged", {"id": 1})
            op.complete(201, {"id": 1})
    assert op.response.body == b'{"id":1}'
    assert client.lookup(scope, "k").outcome == "completed"


@pytest.mark.parametrize("name", SHARED)
def test_a_heartbeat_does_not_take_a_lost_acknowledgement_for_a_lost_reservation(
    open_client: OpenClient, scope: str, orders: Count, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    client = open_client(name)
    with client.leased(scope, "k", heartbeat=OFTEN) as op:
        lose_next_commit(client, op, monkeypatch)
        for attempt in range(2):
            with contextlib.suppress(psycopg.OperationalError), client.block(op.transaction) as connection:
                client.insert(connection, scope)
                op.complete(201)
            if attempt == 0:
                wait_until(lambda: has_ended(op._heartbeat), "the heartbeat to learn that the answer is stored")
        assert not op.lost
    assert op.response.status == 201
    assert orders(scope) == 1


def has_ended(heartbeat: Any) -> bool:
    """Tell whether its thread or task has come to an end by itself."""
    task = getattr(heartbeat, "_task", None)
    return task.done() if task is not None else not any(t.name == "pyidem-heartbeat" for t in threading.enumerate())

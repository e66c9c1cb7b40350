"""Checkpoints between sessions: they commit with the work they speak of, and only for the owner."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import complete, lookup, owner_call, reserve, set_policy, sqlstate_of, stored
from tests.support.database import Database, advance_clock

TOKEN = UUID("6f1c1d3e-0000-4000-8000-000000000001")


@pytest.fixture
def shop(testing_db: Database) -> Database:
    """A database in which the key is TOKEN's, under a lease of a minute; a lapse lets the next attempt take over."""
    with testing_db.connect() as connection:
        connection.execute("create table effect (step text)")
        set_policy(connection, "again", on_lapse="retry")
        connection.commit()
        reserve(connection, "k", mode="leased", token=TOKEN, policy="again", state=Jsonb({"amount": 7}))
    return testing_db


def checkpoint(connection: psycopg.Connection, recovery_point: str, state: Any = None, *, token: UUID = TOKEN) -> bool:
    given = None if state is None else Jsonb(state)
    return bool(owner_call(connection, "checkpoint", "k", token, recovery_point=recovery_point, state=given))


def next_attempt(database: Database) -> Any:
    """Take the key over after a lapse."""
    with database.connect() as connection:
        advance_clock(connection, timedelta(hours=1))
        return reserve(connection, "k", mode="leased", policy="again")


def test_what_is_committed_is_what_the_next_attempt_is_told(shop: Database) -> None:
    owner = shop.connect()
    owner.execute("insert into effect values ('charge')")
    assert checkpoint(owner, "charged", {"charge": 3}) is True
    owner.commit()
    owner.execute("insert into effect values ('mail')")
    assert checkpoint(owner, "mailed", {"mail": 4}) is True
    owner.rollback()
    answer = next_attempt(shop)
    assert (answer.outcome, answer.attempt) == ("started", 2)
    assert (answer.recovery_point, answer.state) == ("charged", {"charge": 3})
    assert owner.execute("select step from effect").fetchall() == [("charge",)]


def test_a_step_whose_acknowledgement_was_lost_is_not_done_twice(shop: Database) -> None:
    owner = shop.connect()
    owner.execute("insert into effect values ('charge')")
    checkpoint(owner, "charged", {"charge": 3})
    owner.commit()
    owner.execute("insert into effect values ('charge')")
    assert checkpoint(owner, "charged", {"charge": 3}) is False
    owner.rollback()
    assert sqlstate_of(owner, "checkpoint", **call("charged", {"charge": 4})) == "IK002"
    assert checkpoint(owner, "mailed") is True
    assert complete(owner, "k", TOKEN, status=201) is True
    owner.commit()
    assert owner.execute("select step from effect").fetchall() == [("charge",)]


@pytest.mark.parametrize(("state", "answer"), [({"charge": 3}, False), ({"charge": 4}, "IK002")])
def test_of_two_at_once_the_second_waits_and_is_told_of_the_first(  # type: ignore[no-untyped-def]
    shop: Database, in_thread, state: Any, answer: Any
) -> None:
    first, second = shop.connect(), shop.connect()
    checkpoint(first, "charged", {"charge": 3})

    def late() -> Any:
        try:
            return checkpoint(second, "charged", state)
        except psycopg.Error as error:
            return error.sqlstate

    waiting = in_thread(late)
    shop.wait_until_blocked(second)
    first.commit()
    assert waiting.result() == answer
    second.rollback()
    assert stored(first, "k").state == {"charge": 3}


def test_of_two_at_once_the_second_goes_first_where_the_first_rolls_back(shop: Database, in_thread) -> None:  # type: ignore[no-untyped-def]
    first, second = shop.connect(), shop.connect()
    checkpoint(first, "charged", {"charge": 3})
    waiting = in_thread(lambda: checkpoint(second, "charged", {"charge": 4}))
    shop.wait_until_blocked(second)
    first.rollback()
    assert waiting.result() is True
    second.commit()
    assert stored(first, "k").state == {"charge": 4}


def test_an_owner_that_waits_for_a_takeover_has_lost_the_key(shop: Database, in_thread) -> None:  # type: ignore[no-untyped-def]
    thief, owner = shop.connect(), shop.connect()
    advance_clock(thief, timedelta(minutes=2))
    thief.commit()
    heir = reserve(thief, "k", mode="leased", policy="again")
    assert heir.outcome == "started"
    late = in_thread(lambda: sqlstate_of(owner, "checkpoint", **call("charged", None)))
    shop.wait_until_blocked(owner)
    thief.commit()
    assert late.result() == "IK002"
    assert stored(thief, "k").recovery_point is None
    assert checkpoint(thief, "charged", token=heir.token) is True


def test_nobody_else_waits_for_an_open_checkpoint(shop: Database) -> None:
    owner = shop.connect()
    other = shop.connect(autocommit=True, options="-c lock_timeout=100ms")
    checkpoint(owner, "charged")
    assert reserve(other, "k", policy="again").outcome == "in_progress"
    advance_clock(other, timedelta(minutes=2))
    # lapsed, and its owner at work on it
    assert reserve(other, "k", policy="again").outcome == "in_progress"
    owner.rollback()
    assert lookup(other, "k").outcome == "lapsed"


def test_a_heartbeat_of_its_own_is_not_needed_where_checkpoints_commit_often(shop: Database) -> None:
    owner, other = shop.connect(), shop.connect()
    for minute in range(5):
        advance_clock(owner, timedelta(seconds=50))
        checkpoint(owner, f"part {minute}")
        owner.commit()
    advance_clock(other, timedelta(seconds=5 * 50 + 50))
    assert reserve(other, "k", mode="leased", policy="again").outcome == "in_progress"


def test_the_lease_is_renewed_by_the_clock_after_a_wait(shop: Database, in_thread) -> None:  # type: ignore[no-untyped-def]
    """I13."""
    owner, holder = shop.connect(), shop.connect(autocommit=True)
    holder.execute("begin")
    holder.execute("select from idem_private.reservation for update")
    waiting = in_thread(lambda: checkpoint(owner, "charged"))
    shop.wait_until_blocked(owner)
    after = holder.execute("select clock_timestamp()").fetchone()
    holder.execute("rollback")
    waiting.result()
    owner.commit()
    assert after is not None
    assert lookup(owner, "k").lease_until >= after[0] + timedelta(minutes=1)


def test_a_release_after_a_checkpoint_keeps_what_was_done_for_the_next_attempt(shop: Database) -> None:
    owner, other = shop.connect(), shop.connect()
    checkpoint(owner, "charged", {"charge": 3})
    owner.commit()
    assert owner_call(owner, "release", "k", TOKEN) is True
    owner.commit()
    assert lookup(other, "k").outcome == "released"
    answer = reserve(other, "k", mode="leased")
    assert (answer.outcome, answer.attempt) == ("started", 2)
    assert (answer.recovery_point, answer.state) == ("charged", {"charge": 3})


def test_a_release_after_a_checkpoint_that_was_rolled_back_frees_the_key(shop: Database) -> None:
    owner = shop.connect()
    checkpoint(owner, "charged", {"charge": 3})
    owner.rollback()
    assert owner_call(owner, "release", "k", TOKEN) is True
    owner.commit()
    assert lookup(owner, "k").outcome == "absent"


def test_a_leased_reserve_after_a_checkpoint_in_its_transaction_is_refused(shop: Database) -> None:
    connection = shop.connect()
    reserve(connection, "l", mode="leased")
    checkpoint(connection, "charged")
    assert sqlstate_of(connection, "reserve", scope="shop", key="m", mode="leased") == "IK004"


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_row_changed_after_the_snapshot_is_a_serialization_failure(shop: Database, isolation: str) -> None:
    late = shop.connect(autocommit=True)
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    with shop.connect() as owner:
        owner_call(owner, "extend", "k", TOKEN)
    assert sqlstate_of(late, "checkpoint", **call("charged", None)) == "40001"
    late.execute("rollback")
    assert checkpoint(late, "charged") is True


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_reservation_made_after_the_snapshot_is_a_serialization_failure(db: Database, isolation: str) -> None:
    late = db.connect(autocommit=True)
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    assert sqlstate_of(late, "checkpoint", **call("charged", None)) == "IK003"
    with db.connect() as owner:
        reserve(owner, "k", mode="leased", token=TOKEN)
    assert sqlstate_of(late, "checkpoint", **call("charged", None)) == "40001"


def call(recovery_point: str, state: Any) -> dict[str, Any]:
    given = None if state is None else Jsonb(state)
    return {"scope": "shop", "key": "k", "token": TOKEN, "recovery_point": recovery_point, "state": given}

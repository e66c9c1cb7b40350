"""I3, I1: what is read before a lock is read again under it.

A session is stopped between its look and its lock, at a helper that it calls there, while others change the key.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.support.calls import complete, lookup, owner_call, reserve, set_policy
from tests.support.database import Database, advance_clock
from tests.support.waiting import Background

OWNER = UUID("6f1c1d3e-0000-4000-8000-000000000001")
HELPERS = {
    "clock": ("", "timestamptz", ""),
    "lock_id": ("scope text, key text", "bigint", "$1, $2"),
    "policy_of": ("name text", "idem_private.policy", "$1"),
}

InThread = Callable[[Callable[[], Any]], Background[Any]]


class Stop:
    """A place in the SQL at which one session waits until it may go on."""

    def __init__(self, database: Database, helper: str) -> None:
        arguments, returns, passed_on = HELPERS[helper]
        self._database = database
        self._gate = database.connect(autocommit=True)
        self._gate.execute("select pg_advisory_lock(1)")
        types = ", ".join(argument.split()[1] for argument in arguments.split(", ") if argument)
        self._gate.execute(
            f"create schema moved; grant usage on schema moved to public;"
            f" alter function idem_private.{helper}({types}) set schema moved"
        )
        self._gate.execute(
            f"create function idem_private.{helper}({arguments}) returns {returns} language plpgsql volatile as $$"
            " begin"
            "    if current_setting('application_name') = 'stopped' then"
            "        perform pg_advisory_xact_lock_shared(1);"
            "    end if;"
            f"   return moved.{helper}({passed_on});"
            " end $$"
        )
        self.session = database.connect(application_name="stopped")

    def reached(self) -> None:
        """Return when the session has come to the place."""
        self._database.wait_until_blocked(self.session)

    def go_on(self) -> None:
        """Let it pass, now and from now on."""
        self._gate.execute("select pg_advisory_unlock(1)")


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("outcome from idem.reserve('shop', 'k')", "replay"),
        ("outcome from idem.reserve('shop', 'k', mode => 'leased')", "replay"),
        ("outcome from idem.run('shop', 'k', null, 'pay(jsonb)', 'null')", "replay"),
        ("idem.once('shop', 'k')", "duplicate"),
        ("outcome from idem.once_many('shop', '{k}')", "duplicate"),
    ],
    ids=["reserve", "leased", "run", "once", "once_many"],
)
def test_i3_a_key_completed_between_look_and_lock_is_told_without_a_write(
    db: Database, in_thread: InThread, call: str, answer: str
) -> None:
    owner = db.connect()
    owner.execute(
        "create function pay(args jsonb) returns idem.response language sql as"
        " 'select null::int, null::jsonb, null::bytea'"
    )
    owner.commit()
    complete(owner, "k", reserve(owner, "k").token)
    stop = Stop(db, "lock_id")
    attempt = in_thread(lambda: stop.session.execute(f"select {call}".encode()).fetchone())
    stop.reached()
    owner.commit()
    stop.go_on()
    assert attempt.result() == (answer,)
    assert stop.session.execute("select pg_current_xact_id_if_assigned()").fetchone() == (None,)


def test_i1_a_takeover_is_judged_again_under_the_lock(testing_db: Database, in_thread: InThread) -> None:
    """The owner's heartbeat comes between the look, which saw a lapse, and the lock."""
    owner = _lapsed(testing_db)
    stop = Stop(testing_db, "policy_of")
    advance_clock(stop.session, timedelta(minutes=2))
    attempt = in_thread(lambda: reserve(stop.session, "k", mode="leased"))
    stop.reached()
    advance_clock(owner, timedelta(minutes=2))
    owner_call(owner, "extend", "k", OWNER)
    owner.commit()
    stop.go_on()
    answer = attempt.result()
    assert (answer.outcome, answer.attempt) == ("in_progress", 1)
    stop.session.rollback()
    assert complete(owner, "k", OWNER) is True


def test_i3_what_is_locked_is_read_once_more_before_it_is_called_in_progress(
    testing_db: Database, in_thread: InThread
) -> None:
    """The owner has completed; the lock that is met is another's."""
    owner = _lapsed(testing_db)
    stop, other = Stop(testing_db, "policy_of"), testing_db.connect()
    advance_clock(stop.session, timedelta(minutes=2))
    attempt = in_thread(lambda: reserve(stop.session, "k", mode="leased"))
    stop.reached()
    complete(owner, "k", OWNER, status=201)
    owner.commit()
    other.execute("select from idem_private.reservation for update")
    stop.go_on()
    answer = attempt.result()
    assert (answer.outcome, answer.status) == ("replay", 201)


@pytest.mark.parametrize("call", ["idem.once('shop', 'k')", "outcome from idem.once_many('shop', '{k}')"])
def test_i1_an_expired_key_is_judged_again_before_once_marks_it(
    testing_db: Database, in_thread: InThread, call: str
) -> None:
    """A leased attempt begins its new life between the look, which saw it expired, and the lock."""
    with testing_db.connect() as first:
        complete(first, "k", reserve(first, "k").token)
    stop, other = Stop(testing_db, "policy_of"), testing_db.connect()
    for session in (stop.session, other):
        advance_clock(session, timedelta(hours=25))
        session.commit()
    attempt = in_thread(lambda: stop.session.execute(f"select {call}".encode()).fetchone())
    stop.reached()
    token = reserve(other, "k", mode="leased").token
    other.commit()
    stop.go_on()
    assert attempt.result() == ("in_progress",)
    stop.session.commit()
    assert complete(other, "k", token) is True


def test_i1_a_row_removed_after_the_look_is_looked_for_again(testing_db: Database, in_thread: InThread) -> None:
    """Purge removes the expired row that the first look has seen."""
    with testing_db.connect() as first:
        complete(first, "k", reserve(first, "k").token)
    stop = Stop(testing_db, "clock")
    advance_clock(stop.session, timedelta(hours=25))
    attempt = in_thread(lambda: reserve(stop.session, "k"))
    stop.reached()
    with testing_db.connect() as purge:
        purge.execute("delete from idem_private.reservation")
    stop.go_on()
    answer = attempt.result()
    assert (answer.outcome, answer.attempt) == ("started", 1)
    assert lookup(stop.session, "k").outcome == "in_progress"
    assert complete(stop.session, "k", answer.token) is True
    stop.session.commit()


@pytest.mark.parametrize(
    "call",
    [
        "outcome from idem.reserve('shop', 'k')",
        "outcome from idem.run('shop', 'k', null, 'pay(jsonb)', 'null')",
        "idem.once('shop', 'k')",
        "outcome from idem.once_many('shop', '{k}')",
    ],
    ids=["reserve", "run", "once", "once_many"],
)
def test_i1_without_the_lock_whoever_loses_the_race_is_told_so(db: Database, in_thread: InThread, call: str) -> None:
    """Only the constraint arbitrates: the loser waits for the winner, and its transaction stays usable."""
    owner, other = db.connect(), db.connect()
    owner.execute(
        "create or replace function idem_private.lock_id(scope text, key text) returns bigint"
        " language sql volatile as 'select (random() * 9e18)::bigint'"
    )
    owner.execute(
        "create function pay(args jsonb) returns idem.response language sql as"
        " 'select null::int, null::jsonb, null::bytea'"
    )
    owner.commit()
    complete(owner, "k", reserve(owner, "k").token)
    loser = in_thread(lambda: _answer_or_sqlstate(other, call))
    db.wait_until_blocked(other)
    owner.commit()
    # run has called its handler by then, so it cannot go on: the transaction rolls back
    assert loser.result() in ("replay", "duplicate", "in_progress", "IK002")
    assert (loser.result() == "IK002") == ("idem.run" in call)


@pytest.mark.parametrize(
    "call",
    [
        "idem.reserve('shop', 'k')",
        "idem.run('shop', 'k', null, 'pay(jsonb)', 'null')",
        "idem.once('shop', 'k')",
        "idem.once_many('shop', '{j,k}')",
        "idem.complete('shop', 'k', gen_random_uuid())",
    ],
    ids=["reserve", "run", "once", "once_many", "complete"],
)
def test_i3_an_old_snapshot_waits_for_nobody_who_changes_what_it_cannot_see(db: Database, call: str) -> None:
    old, owner = db.connect(autocommit=True), db.connect()
    old.execute(
        "create function pay(args jsonb) returns idem.response language sql as"
        " 'select null::int, null::jsonb, null::bytea'"
    )
    # not lock_timeout, which would look like the answer
    old.execute("set statement_timeout = '2s'")
    old.execute("begin isolation level repeatable read")
    assert lookup(old, "k").outcome == "absent"
    token = reserve(owner, "k", mode="leased").token
    owner.commit()
    owner_call(owner, "extend", "k", token)
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute(f"select {call}".encode())
    owner.rollback()


def test_i3_the_second_half_of_run_waits_for_nobody_by_itself(db: Database) -> None:
    owner, other = db.connect(), db.connect()
    reserve(owner, "k", token=uuid4())
    # a wait would end in 55P03
    other.execute("set local lock_timeout = '100ms'")
    with pytest.raises(psycopg.Error) as caught:
        other.execute("select idem.run_end('shop', 'k', null, null, row(200, null, null))")
    assert caught.value.sqlstate == "IK002"


def _lapsed(database: Database) -> psycopg.Connection:
    """A key that OWNER holds and another may take over in two minutes; return the owner's connection."""
    owner = database.connect()
    set_policy(owner, "again", on_lapse="retry")
    owner.commit()
    reserve(owner, "k", mode="leased", token=OWNER, policy="again")
    owner.commit()
    return owner


def _answer_or_sqlstate(connection: psycopg.Connection, call: str) -> Any:
    try:
        with connection.transaction():
            row = connection.execute(f"select {call}".encode()).fetchone()
    except psycopg.Error as error:
        return error.sqlstate
    assert row is not None
    return row[0]

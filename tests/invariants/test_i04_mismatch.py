"""I4: another fingerprint is a mismatch in every visible state, and changes nothing. I5: it is never rewritten."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import complete, lookup, owner_call, reserve, set_policy, stored
from tests.support.database import Database, advance_clock

TOKEN = UUID("6f1c1d3e-0000-4000-8000-000000000001")


def in_progress(connection: psycopg.Connection) -> None:
    """Reserved just now."""


def lapsed(connection: psycopg.Connection) -> None:
    advance_clock(connection, timedelta(minutes=2))


def given_up(connection: psycopg.Connection) -> None:
    owner_call(connection, "defer", "k", TOKEN)


def released(connection: psycopg.Connection) -> None:
    advance_clock(connection, timedelta(minutes=2))
    taken = reserve(connection, "k", fingerprint=b"first", mode="leased", policy="again")
    assert taken.attempt == 2
    connection.commit()
    owner_call(connection, "release", "k", taken.token)


def completed(connection: psycopg.Connection) -> None:
    complete(connection, "k", TOKEN, status=201)


def tombstone(connection: psycopg.Connection) -> None:
    completed(connection)
    connection.commit()
    advance_clock(connection, timedelta(hours=25))


@pytest.mark.parametrize("fingerprint", [b"second", b"", None], ids=["other", "empty", "null"])
@pytest.mark.parametrize("mode", ["atomic", "leased"])
@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (in_progress, "in_progress"),
        (lapsed, "lapsed"),
        (given_up, "lapsed"),
        (released, "released"),
        (completed, "completed"),
        (tombstone, "expired"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_i4_another_fingerprint_is_a_mismatch_in_every_state(
    shared_db: Database,
    state: Callable[[psycopg.Connection], None],
    outcome: str,
    mode: str,
    fingerprint: bytes | None,
) -> None:
    connection = shared_db.connect()
    set_policy(connection, "again", on_lapse="retry", tombstone=timedelta(days=7))
    connection.commit()
    try:
        reserve(connection, "k", fingerprint=b"first", mode="leased", token=TOKEN, policy="again")
        connection.commit()
        state(connection)
        connection.commit()
        before = stored(connection, "k")
        connection.commit()

        answer = reserve(connection, "k", fingerprint=fingerprint, mode=mode, policy="again")
        assert (answer.outcome, answer.status, answer.token, answer.state) == ("mismatch", None, None, None)
        connection.commit()
        assert stored(connection, "k") == before
        assert before.fingerprint == b"first"
        assert lookup(connection, "k").outcome == outcome
    finally:
        connection.rollback()
        connection.execute("delete from idem_private.reservation; delete from idem_private.unfinished")
        connection.commit()


def test_i4_a_null_fingerprint_equals_only_null(db: Database) -> None:
    connection = db.connect()
    complete(connection, "k", reserve(connection, "k").token)
    connection.commit()
    assert reserve(connection, "k").outcome == "replay"
    assert reserve(connection, "k", fingerprint=b"").outcome == "mismatch"


def test_i5_takeover_release_and_completion_leave_the_fingerprint(testing_db: Database) -> None:
    connection = testing_db.connect()
    set_policy(connection, "again", on_lapse="retry")
    connection.commit()
    arguments = {"fingerprint": b"first", "mode": "leased", "policy": "again"}
    reserve(connection, "k", **arguments)
    connection.commit()
    advance_clock(connection, timedelta(minutes=2))
    connection.commit()
    second = reserve(connection, "k", **arguments)
    connection.commit()
    owner_call(connection, "release", "k", second.token)
    connection.commit()
    third = reserve(connection, "k", **arguments)
    connection.commit()
    assert third.attempt == 3
    complete(connection, "k", third.token, status=201)
    connection.commit()
    assert stored(connection, "k").fingerprint == b"first"
    # three identical calls, not two
    assert [reserve(connection, "k", fingerprint=b"first").outcome for _ in range(3)] == ["replay"] * 3


def test_i5_the_next_attempt_gets_the_state_of_the_first(testing_db: Database) -> None:
    connection = testing_db.connect(autocommit=True)
    set_policy(connection, "again", on_lapse="retry")
    reserve(connection, "k", mode="leased", policy="again", state=Jsonb({"amount": 1}))
    advance_clock(connection, timedelta(minutes=2))
    second = reserve(connection, "k", mode="leased", policy="again", state=Jsonb({"amount": 2}))
    assert (second.attempt, second.state) == (2, {"amount": 1})

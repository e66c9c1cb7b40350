"""I7: an unknown outcome is never forgotten. I8: only finished rows expire, and expiry is decided when read."""

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import complete, lookup, owner_call, reserve, set_policy, stored
from tests.support.database import Database, advance_clock


def test_i7_a_lapsed_key_stays_unresolved_for_years(testing_db: Database) -> None:
    connection = testing_db.connect()
    reserve(connection, "k", mode="leased", fingerprint=b"f")
    connection.commit()
    for _ in range(3):
        advance_clock(connection, timedelta(days=400))
        connection.commit()
        assert reserve(connection, "k", fingerprint=b"f").outcome == "unresolved"
        assert lookup(connection, "k").outcome == "lapsed"
    assert stored(connection, "k").completed_at is None


def test_i7_when_its_attempts_are_used_up_a_key_waits_for_a_decision(testing_db: Database) -> None:
    connection = testing_db.connect()
    set_policy(connection, "twice", on_lapse="retry", max_attempts=2)
    connection.commit()
    outcomes = []
    for _ in range(4):
        answer = reserve(connection, "k", mode="leased", policy="twice")
        outcomes.append((answer.outcome, answer.attempt))
        connection.commit()
        advance_clock(connection, timedelta(minutes=2))
        connection.commit()
    assert outcomes == [("started", 1), ("started", 2), ("unresolved", 2), ("unresolved", 2)]


@pytest.mark.parametrize("policy", ["messages", "default"])
@pytest.mark.parametrize("later", [timedelta(0), timedelta(minutes=2), timedelta(days=400)], ids=str)
def test_i7_once_never_takes_an_unfinished_key_for_a_duplicate(
    testing_db: Database, policy: str, later: timedelta
) -> None:
    connection = testing_db.connect()
    reserve(connection, "k", mode="leased", policy=policy)
    connection.commit()
    advance_clock(connection, later)
    connection.commit()
    assert connection.execute("select idem.once('shop', 'k')").fetchone() == ("in_progress",)
    assert connection.execute("select outcome from idem.once_many('shop', '{k}')").fetchone() == ("in_progress",)


def test_i7_release_after_a_takeover_keeps_the_row(testing_db: Database) -> None:
    connection = testing_db.connect()
    set_policy(connection, "again", on_lapse="retry")
    connection.commit()
    reserve(connection, "k", mode="leased", policy="again", fingerprint=b"f")
    connection.commit()
    advance_clock(connection, timedelta(minutes=2))
    connection.commit()
    second = reserve(connection, "k", mode="leased", policy="again", fingerprint=b"f")
    connection.commit()
    assert owner_call(connection, "release", "k", second.token) is True
    connection.commit()
    advance_clock(connection, timedelta(days=400))
    connection.commit()
    assert reserve(connection, "k", mode="leased", policy="again", fingerprint=b"g").outcome == "mismatch"
    third = reserve(connection, "k", mode="leased", policy="again", fingerprint=b"f")
    assert (third.outcome, third.attempt) == ("started", 3)


def test_i8_expiry_is_half_open_and_decided_when_read(testing_db: Database) -> None:
    connection = testing_db.connect()
    set_policy(
        connection, "short", ttl=timedelta(hours=2), min_retention=timedelta(hours=1), lease=timedelta(seconds=1)
    )
    connection.commit()
    owner = reserve(connection, "k", policy="short", fingerprint=b"f")
    complete(connection, "k", owner.token, status=201)
    connection.commit()
    # the very instant of expiry, to the microsecond
    connection.execute("update idem_private.reservation set expires_at = now() - interval '0.000001 seconds'")
    connection.execute("update idem_private.reservation set completed_at = now() - interval '10 hours'")
    assert lookup(connection, "k").outcome == "absent"
    connection.rollback()
    advance_clock(connection, timedelta(hours=1, minutes=59))
    connection.commit()
    assert reserve(connection, "k", policy="short", fingerprint=b"f").outcome == "replay"
    advance_clock(connection, timedelta(minutes=2))
    connection.commit()
    again = reserve(connection, "k", policy="short", fingerprint=b"g")
    assert (again.outcome, again.attempt) == ("started", 1)
    assert again.token != owner.token


def test_i8_completion_leaves_at_least_the_minimum_retention(testing_db: Database) -> None:
    connection = testing_db.connect()
    set_policy(connection, "short", ttl=timedelta(hours=2), min_retention=timedelta(hours=5))
    connection.commit()
    owner = reserve(connection, "k", policy="short", mode="leased")
    connection.commit()
    advance_clock(connection, timedelta(hours=10))
    connection.commit()
    complete(connection, "k", owner.token, status=201)
    connection.commit()
    advance_clock(connection, timedelta(hours=4, minutes=59))
    connection.commit()
    answer = reserve(connection, "k", policy="short")
    assert answer.outcome == "replay"
    assert answer.expires_at == answer.completed_at + timedelta(hours=5)
    advance_clock(connection, timedelta(minutes=2))
    connection.commit()
    assert lookup(connection, "k").outcome == "absent"


def test_i8_inside_the_tombstone_window_the_key_is_gone_for_good(testing_db: Database) -> None:
    connection = testing_db.connect()
    set_policy(connection, "stone", tombstone=timedelta(days=7))
    connection.commit()
    complete(connection, "k", reserve(connection, "k", policy="stone").token, status=201)
    connection.commit()
    advance_clock(connection, timedelta(hours=25))
    connection.commit()
    answer = reserve(connection, "k", policy="stone")
    assert (answer.outcome, answer.status, answer.body) == ("expired", None, None)
    advance_clock(connection, timedelta(days=7))
    connection.commit()
    assert reserve(connection, "k", policy="stone").outcome == "started"


def test_i8_a_new_life_knows_nothing_of_the_last(testing_db: Database) -> None:
    connection = testing_db.connect(autocommit=True)
    first = reserve(connection, "k", mode="leased", fingerprint=b"f", state=Jsonb(1))
    owner_call(connection, "checkpoint", "k", first.token, recovery_point="charged")
    complete(connection, "k", first.token, status=201, headers=Jsonb([["a", "b"]]), body=b"old")
    advance_clock(connection, timedelta(hours=25))
    second = reserve(connection, "k", mode="leased", fingerprint=b"g")
    assert (second.outcome, second.attempt, second.recovery_point, second.state) == ("started", 1, None, None)
    row = stored(connection, "k")
    assert (row.fingerprint, row.completed_at, row.status, row.headers, row.body) == (b"g", None, None, None, None)


def test_i7_the_list_of_unfinished_keys_follows_them(testing_db: Database) -> None:
    """Resolvers find lapsed keys by it."""
    connection = testing_db.connect(autocommit=True)
    set_policy(connection, "again", on_lapse="retry")

    def listed() -> object:
        return connection.execute("select key, claims, reason from idem_private.unfinished").fetchall()

    owner = reserve(connection, "k", mode="leased", policy="again")
    assert listed() == [("k", 0, None)]
    # what a resolver will note
    connection.execute("update idem_private.unfinished set claims = 3, reason = 'timeout'")
    reserve(connection, "k", mode="leased", token=owner.token)
    assert listed() == [("k", 3, "timeout")]
    advance_clock(connection, timedelta(minutes=2))
    second = reserve(connection, "k", mode="leased")
    assert listed() == [("k", 0, None)]
    complete(connection, "k", second.token)
    assert listed() == []

    advance_clock(connection, timedelta(hours=25))
    third = reserve(connection, "k", mode="leased", policy="again")
    assert (third.attempt, listed()) == (1, [("k", 0, None)])
    owner_call(connection, "release", "k", third.token)
    assert listed() == []

    reserve(connection, "k", mode="leased", policy="again")
    advance_clock(connection, timedelta(minutes=2))
    with connection.transaction():
        fourth = reserve(connection, "k")
        assert (fourth.attempt, listed()) == (2, [])
        complete(connection, "k", fourth.token)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("outcome from idem.reserve('shop', 'k', policy => 'long')", "started"),
        ("idem.once('shop', 'k', 'long')", "first"),
        ("outcome from idem.once_many('shop', '{k}', 'long')", "first"),
    ],
    ids=["reserve", "once", "once_many"],
)
def test_i8_a_key_expires_by_its_own_policy_whoever_asks(testing_db: Database, call: str, answer: str) -> None:
    connection = testing_db.connect(autocommit=True)
    set_policy(connection, "short", ttl=timedelta(hours=2), min_retention=timedelta(hours=1))
    set_policy(connection, "long", ttl=timedelta(hours=2), min_retention=timedelta(days=30))
    with connection.transaction():
        complete(connection, "k", reserve(connection, "k", policy="short").token)
    advance_clock(connection, timedelta(hours=3))
    with connection.transaction(force_rollback=True):
        assert connection.execute(f"select {call}".encode()).fetchone() == (answer,)

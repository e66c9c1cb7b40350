"""I14: whether, when and how often purge runs changes no answer."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from tests.support.calls import complete, lookup, once, owner_call, reserve, set_policy
from tests.support.database import Database

HOURS = [0, 23, 24.5, 25, 30.5, 31.5, 48, 71.5, 72.5, 24 * 4, 24 * 14.5, 24 * 17.5, 24 * 101, 24 * 900]
KEYS = ["completed", "buried", "kept", "late", "lapsed", "free", "mark", "buried mark", "never used"]


@pytest.fixture
def connection(testing_db: Database) -> psycopg.Connection:
    """A connection to a database that holds a key in every state, and no pg_cron."""
    connection = testing_db.connect()
    assert connection.execute("select count(*) from pg_extension where extname = 'pg_cron'").fetchone() == (0,)
    connection.execute("set idem.single_transaction = on")
    set_policy(connection, "buried", tombstone="2 days")
    set_policy(connection, "buried mark", tombstone="3 days", ttl="14 days")
    set_policy(connection, "kept", min_retention="100 days")
    for key, policy in [("completed", "default"), ("buried", "buried"), ("kept", "kept")]:
        complete(
            connection, key, reserve(connection, key, policy=policy, fingerprint=b"1").token, status=201, body=b"x"
        )
    once(connection, "mark")
    once(connection, "buried mark", policy="buried mark")
    late = reserve(connection, "late", mode="leased", fingerprint=b"1").token
    reserve(connection, "lapsed", mode="leased", fingerprint=b"1")
    token = reserve(connection, "free", mode="leased", fingerprint=b"1").token
    owner_call(connection, "checkpoint", "free", token, recovery_point="charged")
    owner_call(connection, "release", "free", token)
    move_to(connection, 30)
    complete(connection, "late", late, status=201)
    connection.commit()
    return connection


def move_to(connection: psycopg.Connection, hours: float) -> None:
    connection.execute("select set_config('idem.clock_offset', %s, false)", [str(timedelta(hours=hours))])


def answers(connection: psycopg.Connection) -> Iterator[tuple[object, ...]]:
    """What each call says of each key; asking changes nothing."""
    for key in KEYS:
        found = lookup(connection, key)
        yield key, found.outcome, found.status, found.body, found.attempt, found.expires_at
        for fingerprint in (b"1", b"2", None):
            with connection.transaction(force_rollback=True):
                row = reserve(connection, key, fingerprint=fingerprint)
                yield key, fingerprint, row.outcome, row.status, row.body, row.attempt, row.recovery_point
        with connection.transaction(force_rollback=True):
            yield key, once(connection, key)


@pytest.mark.parametrize("batch", [1, 10_000])
def test_i14_purge_changes_no_answer_at_any_time(batch: int, connection: psycopg.Connection) -> None:
    expected = []
    for hours in HOURS:
        move_to(connection, hours)
        expected.append(list(answers(connection)))
    outcomes = {answer[1] for answer in expected[-1] if len(answer) == 6}
    assert outcomes == {"absent", "lapsed", "released"}, "everything that is finished expires in the end"

    removed = 0
    for hours, before in zip(HOURS, expected, strict=True):
        move_to(connection, hours)
        row = connection.execute("select idem.purge(%s)", [batch]).fetchone()
        assert row is not None
        removed += row[0]
        connection.commit()
        assert list(answers(connection)) == before, f"after {hours} hours"
    if batch > 1:
        assert removed == 6 + 2, "six finished keys, two of them by way of a tombstone"
        left = connection.execute("select key from idem_private.reservation order by key").fetchall()
        assert left == [("free",), ("lapsed",)]


def test_i14_a_purge_that_comes_once_in_a_hundred_days_removes_the_same(connection: psycopg.Connection) -> None:
    move_to(connection, HOURS[-1])
    assert connection.execute("select idem.purge()").fetchone() == (6,)

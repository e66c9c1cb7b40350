"""I3: reserve and lookup wait for nobody's open transaction, whatever it has done to the key."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from tests.support.calls import complete, lookup, owner_call, reserve, set_policy
from tests.support.database import Database, advance_clock

TOKEN = UUID("6f1c1d3e-0000-4000-8000-000000000001")


def leased_key(database: Database) -> None:
    with database.connect() as connection:
        set_policy(connection, "again", on_lapse="retry")
        connection.commit()
        reserve(connection, "k", mode="leased", token=TOKEN, policy="again")


def completed_key(database: Database) -> None:
    leased_key(database)
    with database.connect() as connection:
        complete(connection, "k", TOKEN, status=201)


def first_atomic(connection: psycopg.Connection) -> None:
    reserve(connection, "k", token=TOKEN)


def finished_atomic(connection: psycopg.Connection) -> None:
    first_atomic(connection)
    complete(connection, "k", TOKEN, status=201)


def first_leased(connection: psycopg.Connection) -> None:
    reserve(connection, "k", token=TOKEN, mode="leased")


def completing(connection: psycopg.Connection) -> None:
    complete(connection, "k", TOKEN, status=201)


def extending(connection: psycopg.Connection) -> None:
    owner_call(connection, "extend", "k", TOKEN)


def deferring(connection: psycopg.Connection) -> None:
    owner_call(connection, "defer", "k", TOKEN)


def releasing(connection: psycopg.Connection) -> None:
    owner_call(connection, "release", "k", TOKEN)


def taking_over(connection: psycopg.Connection) -> None:
    advance_clock(connection, timedelta(minutes=2))
    assert reserve(connection, "k", policy="again").outcome == "started"


def replacing(connection: psycopg.Connection) -> None:
    advance_clock(connection, timedelta(hours=25))
    assert reserve(connection, "k", policy="again").outcome == "started"


def purging(connection: psycopg.Connection) -> None:
    connection.execute("delete from idem_private.reservation")


def nothing(database: Database) -> None:
    """No row before."""


@pytest.mark.parametrize(
    ("before", "open_transaction"),
    [
        (nothing, first_atomic),
        (nothing, finished_atomic),
        (nothing, first_leased),
        (leased_key, completing),
        (leased_key, extending),
        (leased_key, deferring),
        (leased_key, releasing),
        (leased_key, taking_over),
        (completed_key, replacing),
        (completed_key, purging),
    ],
    ids=lambda value: value.__name__,
)
def test_i3_nobody_waits_for_an_open_transaction(
    testing_db: Database, before: Callable[[Database], None], open_transaction: Callable[[psycopg.Connection], None]
) -> None:
    before(testing_db)
    busy, other = testing_db.connect(), testing_db.connect()
    open_transaction(busy)
    for later in (timedelta(0), timedelta(minutes=2), timedelta(hours=25)):
        for mode in ("atomic", "leased"):
            # a wait would end in 55P03
            other.execute("set local lock_timeout = '100ms'")
            other.execute("select set_config('idem.clock_offset', %s, true)", [str(later)])
            answer = reserve(other, "k", mode=mode, policy="again" if before is not nothing else "default")
            still_stored = before is completed_key and later < timedelta(hours=24)
            assert answer.outcome == ("replay" if still_stored else "in_progress"), (later, mode)
            lookup(other, "k")
            other.rollback()


def test_i3_fifty_sessions_at_one_key_two_hundred_times(db: Database, server_log: Callable[[], str]) -> None:
    """In each round one is started, and keeps its transaction open until all others have been answered.

    A wait of half a second for a lock would end in an error; nothing of it is an error to the server.
    """
    rounds, sessions = 200, 50
    barrier = threading.Barrier(sessions)
    answered = [threading.Semaphore(0) for _ in range(rounds)]

    def attempt() -> list[str]:
        outcomes = []
        with psycopg.connect(db.dsn, options="-c lock_timeout=500ms") as connection:
            for number in range(rounds):
                barrier.wait()
                answer = reserve(connection, f"k{number}", fingerprint=b"f")
                outcomes.append(answer.outcome)
                if answer.outcome == "started":
                    for _ in range(sessions - 1):
                        assert answered[number].acquire(timeout=30)
                    complete(connection, f"k{number}", answer.token, status=201)
                else:
                    answered[number].release()
                connection.commit()
        return outcomes

    with ThreadPoolExecutor(sessions) as pool:
        futures = [pool.submit(attempt) for _ in range(sessions)]
        counts = Counter(outcome for future in futures for outcome in future.result(300))
    assert counts == {"started": rounds, "in_progress": rounds * (sessions - 1)}
    assert " ERROR: " not in server_log()


def test_i3_keys_whose_32_bit_hashes_collide_do_not_meet(db: Database) -> None:
    first, second = db.connect(), db.connect()
    assert first.execute("select hashtext('key-49566') = hashtext('key-84659')").fetchone() == (True,)
    assert reserve(first, "key-49566").outcome == "started"
    assert reserve(second, "key-84659").outcome == "started"


def test_i3_owner_calls_may_wait_for_the_row_and_then_check_again(testing_db: Database) -> None:
    """A takeover is open; the owner's completion waits for it and is then refused."""
    leased_key(testing_db)
    thief, owner = testing_db.connect(), testing_db.connect()
    advance_clock(thief, timedelta(minutes=2))
    thief.commit()
    taken = reserve(thief, "k", policy="again", mode="leased")
    assert taken.outcome == "started"
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(complete, owner, "k", TOKEN, status=200)
        testing_db.wait_until_blocked(owner)
        thief.commit()
        with pytest.raises(psycopg.Error) as caught:
            late.result(30)
    assert caught.value.sqlstate == "IK002"
    owner.rollback()
    with testing_db.connect() as check:
        assert (lookup(check, "k").attempt, lookup(check, "k").outcome) == (2, "in_progress")

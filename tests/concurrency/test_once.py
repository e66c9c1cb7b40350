"""Messages between sessions: each is first once, nobody waits, and batches cannot deadlock."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from tests.support.calls import complete, lookup, once, once_many, once_undo, reserve, sqlstate_of, stored
from tests.support.database import Database, advance_clock


def one(connection: psycopg.Connection, key: str) -> str:
    return once(connection, key)


def as_batch(connection: psycopg.Connection, key: str) -> str:
    return once_many(connection, [key])[0][1]


Call = Callable[[psycopg.Connection, str], str]
both_ways = pytest.mark.parametrize("mark", [one, as_batch], ids=["once", "once_many"])


def impatient(database: Database) -> psycopg.Connection:
    """Open a connection on which a wait for a lock ends in 55P03."""
    return database.connect(autocommit=True, options="-c lock_timeout=100ms")


@both_ways
def test_a_message_in_hand_is_in_progress_without_a_wait(db: Database, mark: Call) -> None:
    first, second = db.connect(), impatient(db)
    assert mark(first, "m") == "first"
    assert mark(second, "m") == "in_progress"
    assert reserve(second, "m").outcome == "in_progress"
    assert lookup(second, "m").outcome == "absent"
    first.commit()
    assert mark(second, "m") == "duplicate"


@both_ways
def test_after_a_rollback_the_message_is_first_again(db: Database, mark: Call) -> None:
    first, second = db.connect(), impatient(db)
    mark(first, "m")
    first.rollback()
    assert mark(second, "m") == "first"


@both_ways
def test_after_a_rollback_to_a_savepoint_the_message_is_free_at_once(db: Database, mark: Call) -> None:
    first, second = db.connect(), impatient(db)
    first.execute("savepoint before")
    mark(first, "m")
    first.execute("rollback to before")
    assert mark(second, "m") == "first"
    assert mark(first, "m") == "duplicate"


@both_ways
def test_a_message_is_in_progress_while_its_key_is_reserved(db: Database, mark: Call) -> None:
    owner, second = db.connect(), impatient(db)
    answer = reserve(owner, "m")
    assert mark(second, "m") == "in_progress"
    complete(owner, "m", answer.token)
    assert mark(second, "m") == "in_progress"
    owner.commit()
    assert mark(second, "m") == "duplicate"


@both_ways
def test_an_expired_message_that_another_transaction_has_is_in_progress(testing_db: Database, mark: Call) -> None:
    with testing_db.connect() as early:
        once(early, "m")
    first, second = testing_db.connect(), impatient(testing_db)
    advance_clock(second, timedelta(days=15))
    advance_clock(first, timedelta(days=15))
    first.commit()
    assert mark(first, "m") == "first"
    assert mark(second, "m") == "in_progress"
    first.rollback()
    first.execute("delete from idem_private.reservation")
    assert mark(second, "m") == "in_progress"
    first.rollback()
    assert mark(second, "m") == "first"


@both_ways
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("made_by", ["once", "reserve"])
def test_a_mark_committed_after_the_snapshot_is_a_serialization_failure(
    db: Database, mark: Call, isolation: str, made_by: str
) -> None:
    late = db.connect(autocommit=True)
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    with db.connect() as early:
        if made_by == "once":
            once(early, "m")
        else:
            reserve(early, "m", mode="leased")
    with pytest.raises(psycopg.errors.SerializationFailure):
        mark(late, "m")
    late.execute("rollback")
    assert mark(late, "m") == ("duplicate" if made_by == "once" else "in_progress")


@both_ways
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_an_expired_mark_renewed_after_the_snapshot_is_a_serialization_failure(
    testing_db: Database, mark: Call, isolation: str
) -> None:
    with testing_db.connect() as early:
        once(early, "m")
    late = testing_db.connect(autocommit=True)
    advance_clock(late, timedelta(days=15))
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    with testing_db.connect() as other:
        advance_clock(other, timedelta(days=15))
        assert once(other, "m") == "first"
    with pytest.raises(psycopg.errors.SerializationFailure):
        mark(late, "m")
    late.execute("rollback")
    assert mark(late, "m") == "duplicate"


@both_ways
@pytest.mark.parametrize("before", ["new", "expired"])
def test_of_twenty_deliveries_at_once_one_is_first(testing_db: Database, mark: Call, before: str) -> None:
    if before == "expired":
        with testing_db.connect() as early:
            once(early, "m")
    sessions = 20
    barrier = threading.Barrier(sessions)

    def deliver() -> str:
        with psycopg.connect(testing_db.dsn) as connection:
            advance_clock(connection, timedelta(days=15))
            barrier.wait()
            return mark(connection, "m")

    with ThreadPoolExecutor(sessions) as pool:
        outcomes = [future.result() for future in [pool.submit(deliver) for _ in range(sessions)]]
    assert outcomes.count("first") == 1
    assert set(outcomes) <= {"first", "in_progress", "duplicate"}


@both_ways
def test_without_the_lock_the_constraint_still_lets_one_be_first(db: Database, mark: Call, in_thread) -> None:  # type: ignore[no-untyped-def]
    """The lock is taken away; the loser then waits for the winner, and does not take the message for its own."""
    with db.connect() as setup:
        setup.execute(
            "create or replace function idem_private.lock_id(scope text, key text) returns bigint"
            " language sql volatile as 'select (random() * 9e18)::bigint'"
        )
    first, second = db.connect(), db.connect()
    assert mark(first, "m") == "first"
    loser = in_thread(lambda: mark(second, "m"))
    db.wait_until_blocked(second)
    first.commit()
    assert loser.result() in ("duplicate", "in_progress")


@both_ways
def test_locks_end_with_the_transaction(db: Database, mark: Call) -> None:
    connection, watcher = db.connect(), db.connect(autocommit=True)
    locks = "select count(*) from pg_locks where locktype = 'advisory' and pid = %s"
    for finish in (connection.commit, connection.rollback):
        mark(connection, f"m {finish.__name__}")
        assert watcher.execute(locks, [connection.info.backend_pid]).fetchone() == (1,)
        finish()
        assert watcher.execute(locks, [connection.info.backend_pid]).fetchone() == (0,)


@pytest.mark.slow
def test_two_batches_in_opposite_order_a_thousand_times_neither_wait_nor_deadlock(
    db: Database, server_log: Callable[[], str]
) -> None:
    """Both transactions stay open until both are answered: each key is first in one and in progress in the other.

    A wait of half a second for a lock would end in an error; nothing of it is an error to the server.
    """
    rounds, size = 1000, 10
    barrier = threading.Barrier(2, timeout=60)

    def consume(backwards: bool) -> tuple[Counter[str], int]:
        firsts: Counter[str] = Counter()
        refused = 0
        with psycopg.connect(db.dsn, options="-c lock_timeout=500ms") as connection:
            for number in range(rounds):
                keys = sorted((f"{number}:{n}" for n in range(size)), reverse=backwards)
                barrier.wait()
                answers = once_many(connection, keys)
                assert [key for key, _ in answers] == keys
                assert {outcome for _, outcome in answers} <= {"first", "in_progress"}
                firsts.update(key for key, outcome in answers if outcome == "first")
                busy = [key for key, outcome in answers if outcome == "in_progress"]
                refused += len(busy)
                barrier.wait()
                connection.commit()
                barrier.wait()
                assert once_many(connection, busy) == [(key, "duplicate") for key in busy]
                connection.commit()
        return firsts, refused

    with ThreadPoolExecutor(2) as pool:
        results = [future.result(120) for future in [pool.submit(consume, False), pool.submit(consume, True)]]
    firsts = results[0][0] + results[1][0]
    assert len(firsts) == rounds * size
    assert set(firsts.values()) == {1}
    assert results[0][1] + results[1][1] == rounds * size
    assert " ERROR: " not in server_log()
    assert "deadlock" not in server_log()


def test_batches_that_overlap_expire_and_roll_back_commit_each_message_once(testing_db: Database) -> None:
    """Consumers take random batches over and over, some of which roll back, until nothing is in progress."""
    keys, consumers = [f"m{n}" for n in range(40)], 4
    with testing_db.connect() as setup:
        setup.execute("create table effect (key text, life int)")

    def consume(seed: int) -> None:
        dice = random.Random(seed)
        with psycopg.connect(testing_db.dsn, options="-c lock_timeout=500ms") as connection:
            for life in range(4):
                connection.execute("select set_config('idem.clock_offset', %s, false)", [f"{life * 15} days"])
                connection.commit()
                barrier.wait()
                left = set(keys)
                while left:
                    batch = dice.sample(sorted(left), dice.randint(1, len(left)))
                    answers = once_many(connection, batch)
                    for key, outcome in answers:
                        if outcome == "first":
                            connection.execute("insert into effect values (%s, %s)", [key, life])
                    if dice.random() < 0.3:
                        connection.rollback()
                    else:
                        connection.commit()
                        left -= {key for key, outcome in answers if outcome != "in_progress"}
                barrier.wait()

    barrier = threading.Barrier(consumers, timeout=60)
    with ThreadPoolExecutor(consumers) as pool:
        for future in [pool.submit(consume, seed) for seed in range(consumers)]:
            future.result(120)
    with testing_db.connect() as check:
        counts = check.execute("select key, life, count(*) from effect group by key, life").fetchall()
    assert len(counts) == len(keys) * 4
    assert {count for _, _, count in counts} == {1}


def test_a_batch_leaves_rows_of_another_scope_alone(testing_db: Database) -> None:
    """Another consumer's expired mark is neither locked nor written."""
    with testing_db.connect() as early:
        once(early, "m", scope="mail")
    before = stored(testing_db.connect(), "m", scope="mail")
    connection, other = testing_db.connect(), impatient(testing_db)
    for session in (connection, other):
        advance_clock(session, timedelta(days=15))
    connection.commit()
    assert once_many(connection, ["m"], scope="billing") == [("m", "first")]
    assert stored(connection, "m", scope="mail") == before
    assert once(other, "m", scope="mail") == "first"


def test_only_the_marks_of_this_transaction_are_undone(db: Database) -> None:
    connection, other = db.connect(), db.connect()
    once_many(connection, ["a", "b"])
    connection.commit()
    once(connection, "c")
    once(other, "d")
    assert once_undo(connection, ["a", "b", "c", "d"]) == 1
    connection.commit()
    other.commit()
    assert [lookup(connection, key).outcome for key in "abcd"] == ["completed", "completed", "absent", "completed"]


def test_an_undone_mark_is_in_progress_until_the_transaction_ends(db: Database) -> None:
    first, second = db.connect(), impatient(db)
    once_many(first, ["a", "b"])
    once_undo(first, ["a"])
    assert once_many(second, ["a", "b"]) == [("a", "in_progress"), ("b", "in_progress")]
    first.commit()
    assert once_many(second, ["a", "b"]) == [("a", "first"), ("b", "duplicate")]


def test_an_undone_mark_of_an_expired_key_has_one_owner_still(testing_db: Database) -> None:
    with testing_db.connect() as early:
        once_many(early, ["gone", "again"])
    first, second = testing_db.connect(), impatient(testing_db)
    for session in (first, second):
        advance_clock(session, timedelta(days=15))
    first.commit()
    once_many(first, ["gone", "again"])
    assert once_undo(first, ["gone", "again"]) == 2
    assert once(first, "again") == "first"
    assert once_many(second, ["gone", "again"]) == [("gone", "in_progress"), ("again", "in_progress")]
    first.commit()
    assert once_many(second, ["gone", "again"]) == [("gone", "first"), ("again", "duplicate")]


def test_an_undo_that_is_rolled_back_has_not_been(db: Database) -> None:
    connection = db.connect()
    once(connection, "m")
    connection.execute("savepoint failed")
    assert once_undo(connection, ["m"]) == 1
    connection.execute("rollback to failed")
    connection.commit()
    assert lookup(connection, "m").outcome == "completed"


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_marks_are_undone_under_an_old_snapshot_too(db: Database, isolation: str) -> None:
    connection = db.connect(autocommit=True)
    connection.execute(f"begin isolation level {isolation}")
    once_many(connection, ["a", "b"])
    assert once_undo(connection, ["a"]) == 1
    assert once(connection, "a") == "first"
    assert once_undo(connection, ["a", "b"]) == 2
    connection.execute("commit")
    assert lookup(connection, "a").outcome == "absent"


def test_a_batch_above_the_limit_marks_nothing(db: Database) -> None:
    connection = db.connect()
    keys = [f"m{n}" for n in range(201)]
    assert sqlstate_of(connection, "once_many", scope="shop", keys=keys) == "IK007"
    connection.commit()
    assert stored(connection, "m0") is None
    assert sqlstate_of(connection, "once_many", scope="shop", keys=keys[1:]) is None

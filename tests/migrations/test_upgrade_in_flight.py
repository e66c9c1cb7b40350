"""An upgrade while keys are in flight and clients of the version before go on calling."""

from collections.abc import Callable, Iterator
from itertools import count
from threading import Event
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from pyidem import Idem
from tests.migrations.next_version import FIRST, SECOND, Checkout
from tests.migrations.support import catalog, owner_dsn
from tests.support.calls import complete, lookup, reserve
from tests.support.database import Database
from tests.support.waiting import Background, wait_until


@pytest.fixture
def upgrade(later: Checkout, db: Database) -> Iterator[Callable[[], Background[tuple[int, str]]]]:
    """Start the upgrade to the second revision; its result is the exit code and what was printed."""
    return lambda: Background(lambda: outcome(later, db, "upgrade"))


def outcome(later: Checkout, db: Database, *command: str) -> tuple[int, str]:
    done = later.pyidem(*command, "--dsn", owner_dsn(db))
    return done.returncode, done.stdout + done.stderr


def wait_for_the_upgrade_to_wait(db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        wait_until(
            lambda: (
                connection.execute(
                    "select count(*) from pg_locks as l where l.mode = 'AccessExclusiveLock' and not l.granted"
                    " and l.database = (select oid from pg_database where datname = current_database())"
                ).fetchone()
                == (1,)
            ),
            "the upgrade to wait for a table",
        )


def test_a_leased_key_reserved_before_is_completed_after(
    upgrade: Callable[[], Background[tuple[int, str]]], db: Database
) -> None:
    with db.connect(autocommit=True, prepare_threshold=0) as connection:
        before = reserve(connection, "k", mode="leased")
        reserve(connection, "k2", mode="leased")
        code, said = upgrade().result(60)
        assert (code, said) == (0, f"Upgraded to {SECOND}.\n")

        assert reserve(connection, "k", mode="leased", token=before.token).outcome == "started"
        assert complete(connection, "k", before.token, status=201, body=b"done")
        after = reserve(connection, "k", mode="leased")
        assert (after.outcome, after.status, after.body) == ("replay", 201, b"done")
        assert reserve(connection, "k2", mode="leased").outcome == "in_progress"


def test_a_key_completed_after_the_upgrade_is_kept_by_a_downgrade(
    upgrade: Callable[[], Background[tuple[int, str]]], later: Checkout, db: Database
) -> None:
    with db.connect(autocommit=True) as connection:
        leased = reserve(connection, "k", mode="leased")
        assert upgrade().result(60)[0] == 0
        assert outcome(later, db, "downgrade", FIRST, "--yes")[0] == 0
        assert complete(connection, "k", leased.token, status=201)
        assert lookup(connection, "k").outcome == "completed"


def test_an_open_transaction_makes_the_upgrade_give_up_with_nothing_changed(
    upgrade: Callable[[], Background[tuple[int, str]]], db: Database
) -> None:
    before = catalog(db)
    with db.connect() as connection:
        owner = reserve(connection, "k")
        code, said = upgrade().result(60)

        assert code == 1
        assert "SQLSTATE 55P03" in said
        assert catalog(db) == before
        complete(connection, "k", owner.token, status=201)
        connection.commit()
        assert lookup(connection, "k").outcome == "completed"
    assert upgrade().result(60)[0] == 0


def test_an_upgrade_waits_for_a_short_transaction_and_those_behind_it_get_their_answer(
    upgrade: Callable[[], Background[tuple[int, str]]],
    in_thread: Callable[[Callable[[], Any]], Background[Any]],
    db: Database,
) -> None:
    with db.connect() as working, db.connect(autocommit=True) as other:
        owner = reserve(working, "k")
        started = upgrade()
        wait_for_the_upgrade_to_wait(db)
        behind = in_thread(lambda: reserve(other, "k2", mode="leased"))
        db.wait_until_blocked(other)
        complete(working, "k", owner.token, status=201)
        working.commit()

        assert started.result(60) == (0, f"Upgraded to {SECOND}.\n")
        second = behind.result()
        assert second.outcome == "started"
        assert complete(other, "k2", second.token, status=202)
        assert reserve(other, "k").outcome == "replay"


@pytest.mark.parametrize("operation", ["atomic", "leased"])
def test_a_client_of_the_version_before_goes_on_calling(
    operation: str,
    later: Checkout,
    upgrade: Callable[[], Background[tuple[int, str]]],
    in_thread: Callable[[Callable[[], Any]], Background[Any]],
    db: Database,
) -> None:
    stop, numbers, done = Event(), count(), []

    def work(idem: Idem[Any]) -> None:
        while not stop.is_set():
            key = f"k{next(numbers)}"
            with getattr(idem, operation)("scope", key) as op:
                assert op.outcome == "started"
                op.complete(201)
            done.append(key)

    with ConnectionPool(db.dsn, min_size=4, max_size=4) as pool:
        idem = Idem(pool)
        workers = [in_thread(lambda: work(idem)) for _ in range(4)]
        for move in (upgrade, lambda: Background(lambda: outcome(later, db, "downgrade", FIRST, "--yes")), upgrade):
            so_far = len(done)
            wait_until(lambda so_far=so_far: len(done) > so_far + 20, "the client to be at work")
            assert move().result(60)[0] == 0
        so_far = len(done)
        wait_until(lambda: len(done) > so_far + 20, "the client to go on")
        stop.set()
        for worker in workers:
            worker.result()

    with psycopg.connect(db.dsn) as connection:
        stored = connection.execute("select key from idem.keys where outcome = 'completed'").fetchall()
    assert sorted(stored) == sorted((key,) for key in done)

"""idem.run between sessions: nobody waits for a handler, and the work of at most one of them commits."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.support.calls import complete, lookup, once, once_many, reserve, run, set_policy, sqlstate_of, stored
from tests.support.database import Database, advance_clock
from tests.support.waiting import Background, wait_until

HANDLERS = """
create table effect (args jsonb);
create function pay(args jsonb) returns idem.response language plpgsql as $$
begin
    insert into effect values (args);
    return row(201, null, convert_to('paid', 'UTF8'))::idem.response;
end
$$;
-- stays inside for as long as somebody else holds the lock
create function pay_slowly(args jsonb) returns idem.response language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(42);
    return pay(args);
end
$$;
create function fail_slowly(args jsonb) returns idem.response language plpgsql as $$
begin
    perform pay_slowly(args);
    raise exception 'out of paper' using errcode = 'ZZ001';
end
$$;
"""


@pytest.fixture
def shop(testing_db: Database) -> Database:
    """A database with handlers."""
    with testing_db.connect() as connection:
        connection.execute(HANDLERS)
        set_policy(connection, "again", on_lapse="retry")
    return testing_db


@contextmanager
def inside_the_handler(database: Database, call: Callable[[psycopg.Connection], Any]) -> Iterator[Background[Any]]:
    """Start a call whose handler is slow, and let the handler go on when the block is left."""
    holder, busy = database.connect(), database.connect()
    holder.execute("select pg_advisory_xact_lock(42)")
    background = Background(lambda: call(busy))
    database.wait_until_blocked(busy)
    yield background
    holder.commit()
    wait_until(background.done, "the handler to end")
    busy.rollback() if busy.info.transaction_status == psycopg.pq.TransactionStatus.INERROR else busy.commit()


def effects(database: Database) -> int:
    with database.connect() as connection:
        row = connection.execute("select count(*) from effect").fetchone()
        assert row is not None
        return int(row[0])


def impatient(database: Database) -> psycopg.Connection:
    """Open a connection on which a wait for a lock ends in 55P03."""
    return database.connect(autocommit=True, options="-c lock_timeout=100ms")


def test_everybody_else_is_told_in_progress_at_once_while_a_handler_is_inside(shop: Database) -> None:
    other = impatient(shop)
    with inside_the_handler(shop, lambda busy: run(busy, "k", "pay_slowly(jsonb)", fingerprint=b"f")) as first:
        for fingerprint in (b"f", b"other"):
            answer = run(other, "k", "pay(jsonb)", fingerprint=fingerprint)
            assert (answer.outcome, answer.token, answer.retry_after) == ("in_progress", None, timedelta(seconds=1))
        assert reserve(other, "k", fingerprint=b"f").outcome == "in_progress"
        assert reserve(other, "k", fingerprint=b"f", mode="leased").outcome == "in_progress"
        assert once(other, "k") == "in_progress"
        assert once_many(other, ["k"]) == [("k", "in_progress")]
        assert lookup(other, "k").outcome == "absent"
        assert run(other, "l", "pay(jsonb)").outcome == "started"
    assert first.result().outcome == "started"
    answer = run(other, "k", "pay(jsonb)", fingerprint=b"f")
    assert (answer.outcome, answer.status, answer.body) == ("replay", 201, b"paid")
    assert run(other, "k", "pay(jsonb)", fingerprint=b"other").outcome == "mismatch"
    # that of k and that of l
    assert effects(shop) == 2


def test_after_a_handler_that_raised_the_key_is_free_for_another_session(shop: Database) -> None:
    other = impatient(shop)
    with inside_the_handler(shop, lambda busy: sqlstate_of(busy, "run", **call("fail_slowly(jsonb)"))) as first:
        assert run(other, "k", "pay(jsonb)").outcome == "in_progress"
    assert first.result() == "ZZ001"
    assert run(other, "k", "pay(jsonb)").outcome == "started"
    assert effects(shop) == 1


def test_a_backend_that_dies_inside_a_handler_leaves_nothing(shop: Database) -> None:
    other = impatient(shop)
    holder, busy = shop.connect(), shop.connect()
    holder.execute("select pg_advisory_xact_lock(42)")
    first = Background(lambda: run(busy, "k", "pay_slowly(jsonb)"))
    shop.wait_until_blocked(busy)
    other.execute("select pg_terminate_backend(%s)", [busy.info.backend_pid])
    with pytest.raises(psycopg.errors.AdminShutdown):
        first.result()
    wait_until(lambda: run(other, "k", "pay(jsonb)").outcome == "started", "the key of a dead backend")
    assert effects(shop) == 1


def test_until_its_transaction_ends_a_run_is_in_progress(shop: Database) -> None:
    first, other = shop.connect(), impatient(shop)
    run(first, "k", "pay(jsonb)", fingerprint=b"f")
    assert run(first, "k", "pay(jsonb)", fingerprint=b"f").outcome == "replay"
    assert run(other, "k", "pay(jsonb)", fingerprint=b"f").outcome == "in_progress"
    first.rollback()
    assert run(other, "k", "pay(jsonb)", fingerprint=b"g").outcome == "started"
    assert effects(shop) == 1


def test_a_key_that_run_is_taking_over_is_in_progress(shop: Database) -> None:
    with shop.connect() as dead:
        reserve(dead, "k", mode="leased", policy="again")

    def take_over(connection: psycopg.Connection) -> Any:
        advance_clock(connection, timedelta(minutes=2))
        return run(connection, "k", "pay_slowly(jsonb)")

    other = impatient(shop)
    advance_clock(other, timedelta(minutes=2))
    with inside_the_handler(shop, take_over) as first:
        assert run(other, "k", "pay(jsonb)").outcome == "in_progress"
    assert (first.result().outcome, first.result().attempt) == ("started", 2)
    answer = run(other, "k", "pay(jsonb)")
    assert (answer.outcome, answer.attempt) == ("replay", 2)
    assert effects(shop) == 1


@pytest.mark.parametrize("before", ["new", "expired", "lapsed"])
def test_of_twenty_runs_at_once_one_has_an_effect(shop: Database, before: str) -> None:
    with shop.connect() as connection:
        if before == "expired":
            complete(connection, "k", reserve(connection, "k").token)
        elif before == "lapsed":
            reserve(connection, "k", mode="leased", policy="again")
    sessions = 20
    barrier = threading.Barrier(sessions)

    def attempt() -> str:
        with psycopg.connect(shop.dsn) as connection:
            advance_clock(connection, timedelta(hours=25))
            barrier.wait()
            return str(run(connection, "k", "pay(jsonb)").outcome)

    with ThreadPoolExecutor(sessions) as pool:
        outcomes = [future.result() for future in [pool.submit(attempt) for _ in range(sessions)]]
    assert outcomes.count("started") == 1
    assert set(outcomes) <= {"started", "in_progress", "replay"}
    assert effects(shop) == 1


def test_without_the_lock_the_constraint_still_lets_one_effect_in(shop: Database) -> None:
    """The lock is taken away; the loser then waits for the winner, and all that it did is undone."""
    with shop.connect() as setup:
        setup.execute(
            "create or replace function idem_private.lock_id(scope text, key text) returns bigint"
            " language sql volatile as 'select (random() * 9e18)::bigint'"
        )
    first, second = shop.connect(), shop.connect()
    assert run(first, "k", "pay(jsonb)").outcome == "started"
    loser = Background(lambda: sqlstate_of(second, "run", **call("pay(jsonb)")))
    shop.wait_until_blocked(second)
    first.commit()
    assert loser.result() == "IK002"
    assert effects(shop) == 1


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("made_by", ["run", "reserve", "once"])
def test_a_row_committed_after_the_snapshot_is_a_serialization_failure(
    shop: Database, isolation: str, made_by: str
) -> None:
    late = shop.connect(autocommit=True)
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    with shop.connect() as early:
        if made_by == "run":
            run(early, "k", "pay(jsonb)")
        elif made_by == "reserve":
            reserve(early, "k", mode="leased")
        else:
            once(early, "k")
    before = effects(shop)
    assert sqlstate_of(late, "run", **call("pay(jsonb)")) == "40001"
    late.execute("rollback")
    assert run(late, "k", "pay(jsonb)").outcome == ("in_progress" if made_by == "reserve" else "replay")
    assert effects(shop) == before


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_row_ended_after_the_snapshot_is_not_taken_over(shop: Database, isolation: str) -> None:
    with shop.connect() as owner:
        token = reserve(owner, "k", mode="leased", policy="again").token
    late = shop.connect(autocommit=True)
    advance_clock(late, timedelta(minutes=2))
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    with shop.connect() as owner:
        complete(owner, "k", token, status=200)
    assert sqlstate_of(late, "run", **call("pay(jsonb)")) == "40001"
    late.execute("rollback")
    assert run(late, "k", "pay(jsonb)").status == 200
    assert effects(shop) == 0


@pytest.mark.parametrize("token", ["null", "gen_random_uuid()"])
def test_run_end_stores_nothing_for_a_key_that_another_transaction_holds(shop: Database, token: str) -> None:
    other = impatient(shop)
    end = f"select idem.run_end('shop', 'k', null, {token}, row(500, null, null))"
    holders: list[Callable[[psycopg.Connection], Any]] = [
        lambda connection: run(connection, "k", "pay(jsonb)"),
        lambda connection: reserve(connection, "k"),
        lambda connection: reserve(connection, "k", mode="leased"),
        lambda connection: once(connection, "k"),
        lambda connection: connection.execute("select idem.run_begin('shop', 'k')"),
    ]
    for hold in holders:
        holder = shop.connect()
        hold(holder)
        with pytest.raises(psycopg.Error) as caught:
            other.execute(end)
        # with a token that is nowhere there is no reservation to be seen yet
        assert caught.value.sqlstate == ("IK002" if token == "null" else "IK003")
        assert run(other, "k", "pay(jsonb)").outcome == "in_progress"
        holder.rollback()
    assert stored(other, "k") is None


def test_run_begin_without_run_end_keeps_nothing_after_its_transaction(shop: Database) -> None:
    connection, other = shop.connect(), impatient(shop)
    connection.execute("select idem.run_begin('shop', 'k')")
    connection.commit()
    assert stored(other, "k") is None
    assert run(other, "k", "pay(jsonb)").outcome == "started"


def test_the_token_of_a_run_is_worth_nothing(shop: Database) -> None:
    connection = shop.connect()
    answer = run(connection, "k", "pay(jsonb)")
    connection.commit()
    before = stored(connection, "k")
    assert sqlstate_of(connection, "complete", scope="shop", key="k", token=answer.token, status=500) == "IK002"
    for name in ("release", "defer", "extend"):
        assert sqlstate_of(connection, name, scope="shop", key="k", token=answer.token) == "IK004"
    assert stored(connection, "k") == before


def call(handler: str) -> dict[str, Any]:
    return {"scope": "shop", "key": "k", "fingerprint": None, "handler": handler, "args": None}

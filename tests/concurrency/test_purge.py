"""Purge beside others: it waits for nobody, shares the work, commits as it goes and ends in time."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.support.calls import complete, lookup, once, reserve, set_policy
from tests.support.database import Database, advance_clock
from tests.support.waiting import Background

Start = Callable[[Callable[[], Any]], Background[Any]]
LATER = timedelta(hours=25)


@pytest.fixture
def connect(testing_db: Database) -> Callable[[], psycopg.Connection]:
    """Open a connection a day later: what the test has completed has expired for it."""

    def connect() -> psycopg.Connection:
        connection = testing_db.connect(autocommit=True)
        advance_clock(connection, LATER)
        return connection

    return connect


def store(database: Database, count: int) -> None:
    """Store completed keys."""
    with database.connect() as connection:
        connection.execute("select idem.once('shop', g::text, 'default') from generate_series(1, %s) as g", [count])


def keys(database: Database) -> list[str]:
    with database.connect() as connection:
        return [key for (key,) in connection.execute("select key from idem_private.reservation order by key")]


def purge(connection: psycopg.Connection, *arguments: object) -> int:
    row = connection.execute(f"select idem.purge({', '.join(['%s'] * len(arguments))})".encode(), arguments).fetchone()
    assert row is not None
    return int(row[0])


def purge_all(connection: psycopg.Connection, max_rows: int) -> int:
    """Call the procedure and return how many keys it says that it has removed."""
    told: list[str] = []
    connection.execute("set client_min_messages = debug1")
    connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
    connection.execute("call idem.purge_all(%s)", [max_rows])
    return sum(int(message.split()[0]) for message in told if "keys removed" in message)


def test_twenty_at_once_share_the_work(testing_db: Database, connect: Callable[..., Any], in_thread: Start) -> None:
    store(testing_db, 5000)
    connections = [connect() for _ in range(20)]
    runs = [in_thread(partial(purge_all, connection, 100)) for connection in connections]
    removed = [run.result() for run in runs]
    assert sum(removed) == 5000
    assert keys(testing_db) == []
    assert len([count for count in removed if count]) > 1


def test_i3_what_somebody_has_locked_is_skipped_and_met_again(
    testing_db: Database, connect: Callable[..., Any]
) -> None:
    store(testing_db, 3)
    holder = testing_db.connect()
    holder.execute("select from idem_private.reservation where key = '2' for key share")
    assert purge(connect()) == 2
    assert purge_all(connect(), 1) == 0
    holder.rollback()
    assert purge(connect()) == 1


@pytest.mark.parametrize("call", ["idem.purge()", "idem.forget('shop')", "idem.forget('shop', '1')"])
def test_i3_two_at_once_do_not_wait_for_each_other(
    call: str, testing_db: Database, connect: Callable[..., Any], server_log: Callable[[], str]
) -> None:
    store(testing_db, 3)
    first, second = connect(), connect()
    first.autocommit = False
    first.execute(f"select {call}".encode())
    second.execute("set lock_timeout = '10s'")
    assert second.execute(f"select {call}".encode()).fetchone() == (0,)
    first.rollback()
    assert "still waiting" not in server_log()
    assert second.execute(f"select {call}".encode()).fetchone() != (0,)


def test_i3_forget_waits_for_nobody_who_forgets_the_same_history(testing_db: Database) -> None:
    set_policy(testing_db._admin, "again", on_lapse="retry")
    first, second = testing_db.connect(autocommit=True), testing_db.connect(autocommit=True)
    reserve(first, "k", mode="leased", policy="again")
    for connection in (first, second):
        advance_clock(connection, timedelta(minutes=2))
    complete(first, "k", reserve(first, "k", mode="leased").token, status=201)
    first.autocommit = False
    first.execute("select idem.forget('shop')")
    second.execute("set lock_timeout = '10s'")
    assert second.execute("select idem.forget('shop')").fetchone() == (0,)
    first.commit()
    assert second.execute("select count(*) from idem_private.event").fetchone() == (0,)


def test_an_attempt_beside_purge_does_not_wait_and_starts_afterwards(
    testing_db: Database, connect: Callable[..., Any]
) -> None:
    store(testing_db, 1)
    purger, attempt = connect(), connect()
    purger.autocommit = False
    purge(purger)
    attempt.execute("set lock_timeout = '10s'")
    assert reserve(attempt, "1").outcome == "in_progress"
    assert once(attempt, "1") == "in_progress"
    assert lookup(attempt, "1").outcome == "absent"
    purger.commit()
    assert once(attempt, "1") == "first"


def test_what_begins_a_new_life_before_purge_has_it_stays(testing_db: Database, connect: Callable[..., Any]) -> None:
    store(testing_db, 2)
    attempt = connect()
    attempt.autocommit = False
    token = reserve(attempt, "1").token
    assert purge(connect()) == 1
    complete(attempt, "1", token, status=201)
    attempt.commit()
    assert purge(connect()) == 0
    assert reserve(connect(), "1").status == 201


def test_purge_all_commits_each_batch(testing_db: Database, connect: Callable[..., Any]) -> None:
    store(testing_db, 30)
    purger = connect()
    with testing_db.connect(autocommit=True) as admin:
        admin.execute("create table public.commits (xid xid8, count bigint)")
        admin.execute("grant all on public.commits to public")
        admin.execute(
            "create function public.note() returns trigger language plpgsql as $$begin"
            " insert into public.commits select pg_current_xact_id(), count(*) from gone; return null; end$$"
        )
        admin.execute(
            "create trigger theirs after delete on idem_private.reservation referencing old table as gone"
            " for each statement execute function public.note()"
        )
        purger.execute("call idem.purge_all(10)")
        batches = admin.execute("select count(distinct xid), min(count), max(count) from public.commits").fetchone()
    assert batches == (3, 10, 10)


def test_purge_all_ends_in_time_and_the_next_run_goes_on(testing_db: Database, connect: Callable[..., Any]) -> None:
    store(testing_db, 30)
    with testing_db.connect(autocommit=True) as admin:
        admin.execute(
            "create function public.slow() returns trigger language plpgsql as"
            " $$begin perform pg_sleep(0.2); return null; end$$"
        )
        admin.execute(
            "create trigger theirs after delete on idem_private.reservation"
            " for each statement execute function public.slow()"
        )
        connect().execute("call idem.purge_all(10, '300 milliseconds')")
        assert len(keys(testing_db)) == 20, "the first batch took 0.2 s, a second would end after 0.4 s"
        assert admin.execute("select removed, caught_up from idem_private.last_purge").fetchone() == (10, False)
        connect().execute("call idem.purge_all(10, '1 minute')")
        assert admin.execute("select removed, caught_up from idem_private.last_purge").fetchone() == (20, True)


@pytest.mark.parametrize("max_time", ["0", "-1 second", "200 years"])
def test_purge_all_refuses_a_time_that_is_none(max_time: str, testing_db: Database) -> None:
    connection = testing_db.connect(autocommit=True)
    with pytest.raises(errors.InvalidParameterValue) as refusal:
        connection.execute("call idem.purge_all(max_time => %s)", [max_time])
    assert '"interval_out_of_range"' in str(refusal.value.diag.message_detail)


def test_purge_all_inside_a_transaction_removes_nothing(testing_db: Database, connect: Callable[..., Any]) -> None:
    store(testing_db, 1)
    connection = connect()
    connection.autocommit = False
    with pytest.raises(errors.InvalidTransactionTermination):
        connection.execute("call idem.purge_all()")
    connection.rollback()
    assert keys(testing_db) == ["1"]


def test_purge_all_goes_past_what_it_puts_off(testing_db: Database, connect: Callable[..., Any]) -> None:
    with testing_db.connect(autocommit=True) as admin:
        set_policy(admin, "kept", min_retention="100 days")
        for number in range(25):
            once(admin, f"kept {number}", policy="kept")
    store(testing_db, 5)
    assert purge_all(connect(), 10) == 5


def test_purge_all_is_not_led_astray_by_the_search_path_of_its_caller(
    testing_db: Database, connect: Callable[..., Any]
) -> None:
    store(testing_db, 3)
    caller = connect()
    caller.execute(
        "create schema trap;"
        "create function trap.clock_timestamp() returns timestamptz language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.set_config(text, text, boolean) returns text language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.current_setting(text) returns text language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.format(text, variadic anyarray) returns text language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.sprung(anycompatible, anycompatible) returns boolean language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.sprung(interval, interval) returns boolean language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.sprung(text, text) returns boolean language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.sprung(timestamptz, timestamptz) returns interval language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create function trap.sprung(bigint, bigint) returns bigint language plpgsql as"
        " $$begin raise 'trapped'; end$$;"
        "create operator trap.> (leftarg = interval, rightarg = interval, function = trap.sprung);"
        "create operator trap.<= (leftarg = interval, rightarg = interval, function = trap.sprung);"
        "create operator trap.= (leftarg = text, rightarg = text, function = trap.sprung);"
        "create operator trap.- (leftarg = timestamptz, rightarg = timestamptz, function = trap.sprung);"
        "create operator trap.+ (leftarg = bigint, rightarg = bigint, function = trap.sprung);"
        "set search_path = trap, pg_catalog"
    )
    with pytest.raises(errors.RaiseException, match="trapped"):
        caller.execute("select 1::bigint + 1::bigint")
    caller.execute("call idem.purge_all(1)")
    assert keys(testing_db) == []

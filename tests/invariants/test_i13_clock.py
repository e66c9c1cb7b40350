"""I13: only the database's clock counts, read after any wait. I14: pg_cron changes no answer."""

import time
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from tests.support.calls import complete, owner_call, reserve, set_policy
from tests.support.database import Database


def test_i13_a_lease_is_counted_from_the_call_not_from_the_start_of_the_transaction(db: Database) -> None:
    connection = db.connect()
    connection.execute("select pg_sleep(0.05)")
    answer = reserve(connection, "k", mode="leased", lease=timedelta(milliseconds=1))
    row = connection.execute("select %s - now()", [answer.created_at]).fetchone()
    assert row is not None
    assert row[0] >= timedelta(milliseconds=50)


def test_i13_extend_reads_the_clock_after_its_wait(db: Database, in_thread) -> None:  # type: ignore[no-untyped-def]
    holder, owner = db.connect(), db.connect()
    token = reserve(owner, "k", mode="leased").token
    owner.commit()
    holder.execute("select from idem_private.reservation for update")
    extended = in_thread(lambda: owner_call(owner, "extend", "k", token, lease=timedelta(milliseconds=20)))
    db.wait_until_blocked(owner)
    # longer than the lease: one counted from before the wait would be over already
    time.sleep(0.1)
    released_at = holder.execute("select clock_timestamp()").fetchone()
    assert released_at is not None
    holder.commit()
    assert extended.result() > released_at[0]


LEASED = ["select idem.reserve('shop', 'k', mode => 'leased', token => '{token}', policy => 'again')"]
CHECKPOINT = [*LEASED, "select idem.checkpoint('shop', 'k', '{token}', 'charged')"]
COMPLETED = [*LEASED, "select idem.complete('shop', 'k', '{token}')"]
ROW = "from idem_private.reservation where key = 'k'"


@pytest.mark.parametrize(
    ("before", "later", "call", "stamp"),
    [
        ([], "0", "idem.reserve('shop', 'k')", f"created_at {ROW}"),
        ([], "0", "idem.reserve('shop', 'k', mode => 'leased')", f"lease_until - lease {ROW}"),
        ([], "0", "idem.run('shop', 'k', null, 'pay(jsonb)', 'null')", f"least(created_at, completed_at) {ROW}"),
        ([], "0", "idem.once('shop', 'k')", f"least(created_at, completed_at) {ROW}"),
        ([], "0", "idem.once_many('shop', '{{k}}')", f"least(created_at, completed_at) {ROW}"),
        (LEASED, "0", "idem.reserve('shop', 'k', mode => 'leased', token => '{token}')", f"lease_until - lease {ROW}"),
        (LEASED, "0", "idem.complete('shop', 'k', '{token}')", f"completed_at {ROW}"),
        (LEASED, "0", "idem.extend('shop', 'k', '{token}')", f"lease_until - lease {ROW}"),
        (LEASED, "0", "idem.checkpoint('shop', 'k', '{token}', 'charged')", f"lease_until - lease {ROW}"),
        (LEASED, "0", "idem.defer('shop', 'k', '{token}')", f"lease_until {ROW}"),
        (
            LEASED,
            "0",
            "idem.defer('shop', 'k', '{token}', retry_in => '1 hour')",
            "claim_after - interval '1 hour' from idem_private.unfinished",
        ),
        (CHECKPOINT, "0", "idem.release('shop', 'k', '{token}')", f"released_at {ROW}"),
        (LEASED, "2 minutes", "idem.reserve('shop', 'k', mode => 'leased')", f"lease_until - lease {ROW}"),
        (COMPLETED, "25 hours", "idem.reserve('shop', 'k')", f"created_at {ROW}"),
        (COMPLETED, "25 hours", "idem.once('shop', 'k')", f"least(created_at, completed_at) {ROW}"),
    ],
    ids=str,
)
def test_i13_what_a_call_writes_down_is_the_time_of_the_call(
    testing_db: Database, before: list[str], later: str, call: str, stamp: str
) -> None:
    """Not that of the start of its transaction."""
    token = uuid4()
    connection = testing_db.connect(autocommit=True)
    set_policy(connection, "again", on_lapse="retry")
    connection.execute(
        "create function pay(args jsonb) returns idem.response language sql as"
        " 'select null::int, null::jsonb, null::bytea'"
    )
    for step in before:
        connection.execute(step.format(token=token).encode())
    with connection.transaction():
        connection.execute("select set_config('idem.clock_offset', %s, true)", [later])
        connection.execute("select pg_sleep(0.002)")
        called_at = connection.execute("select clock_timestamp() + %s::interval", [later]).fetchone()
        connection.execute("select " + call.format(token=token))
        written = connection.execute(f"select {stamp}").fetchone()
        assert called_at is not None
        assert written is not None
        assert written[0] >= called_at[0]
        raise psycopg.Rollback


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Australia/Lord_Howe"])
def test_i13_a_day_is_24_hours_in_every_time_zone(db: Database, zone: str) -> None:
    """Whatever today is: one of these lengths ends on the other side of a change of daylight saving time."""
    connection = db.connect()
    connection.execute("select set_config('timezone', %s, false)", [zone])
    for days in (100, 200, 300):
        connection.execute(f"insert into idem.policies (name, ttl) values ('{days}', '{days} days')")
        answer = reserve(connection, f"k{days}", policy=str(days))
        row = connection.execute(
            "select extract(epoch from %s::timestamptz) - extract(epoch from %s::timestamptz)",
            [answer.expires_at, answer.created_at],
        ).fetchone()
        assert row == (days * 24 * 3600,)


def test_i13_the_clock_offset_is_ignored_where_testing_is_not_enabled(db: Database) -> None:
    connection = db.connect()
    complete(connection, "k", reserve(connection, "k").token)
    connection.commit()
    connection.execute("set idem.clock_offset = '10 years'")
    connection.execute("set idem.single_transaction = on")
    assert reserve(connection, "k").outcome == "replay"
    leased = reserve(connection, "l", mode="leased")
    with pytest.raises(Exception, match="cannot be completed by the transaction that made it"):
        complete(connection, "l", leased.token)


def test_i13_testing_does_not_travel_to_a_clone_of_the_database(testing_db: Database) -> None:
    connection = testing_db.connect()
    connection.execute("update idem_private.testing set database = database::bigint + 1")
    connection.execute("set local idem.clock_offset = '10 years'")
    row = connection.execute("select idem_private.clock() < now() + interval '1 day'").fetchone()
    assert row == (True,)


def test_i14_a_finished_key_expires_without_anybody_purging_it(testing_db: Database) -> None:
    connection = testing_db.connect()
    complete(connection, "k", reserve(connection, "k").token)
    connection.commit()
    assert connection.execute("select count(*) from pg_extension where extname = 'pg_cron'").fetchone() == (0,)
    connection.execute("set idem.clock_offset = '25 hours'")
    assert reserve(connection, "k").outcome == "started"

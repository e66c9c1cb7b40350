"""The heartbeat keeps a reservation alive, finds out when it is lost, and is out of the way of the completion."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from pyidem import LostReservation, Reservation
from pyidem._heartbeat import interval_of, lease_of
from tests.client.flavours import FLAVOURS, Client, OpenClient
from tests.client.test_leased import taken_over
from tests.support.waiting import wait_until

SHARED = [name for name in FLAVOURS if not name.endswith("connection")]
OFTEN = timedelta(milliseconds=10)


@pytest.fixture(params=SHARED)
def client(request: pytest.FixtureRequest, open_client: OpenClient) -> Client:
    """Every flavour of the client whose source has more than one connection."""
    return open_client(request.param)


def lease_until(observer: psycopg.Connection, scope: str) -> datetime:
    """Return when the lease ends."""
    row = observer.execute("select lease_until from idem.lookup(%s, 'k')", [scope]).fetchone()
    assert row is not None
    assert isinstance(row[0], datetime)
    return row[0]


def wait_for_a_beat(observer: psycopg.Connection, scope: str) -> None:
    """Return once the lease was renewed."""
    before = lease_until(observer, scope)
    wait_until(lambda: lease_until(observer, scope) > before, "a heartbeat")


def test_the_lease_is_renewed_while_the_block_runs(client: Client, scope: str, observer: psycopg.Connection) -> None:
    with client.leased(scope, "k", lease=timedelta(milliseconds=600), heartbeat=True) as op:
        wait_until(
            lambda: lease_until(observer, scope) > op.reservation.lease_until + timedelta(milliseconds=600),
            "the lease to outlive its first length",
        )
        op.complete(204)
    assert op.response.status == 204
    assert client.lookup(scope, "k").outcome == "completed"


def test_nothing_beats_after_the_block(client: Client, scope: str, observer: psycopg.Connection) -> None:
    with client.leased(scope, "k", heartbeat=OFTEN) as op:
        wait_for_a_beat(observer, scope)
        op.complete(204)
    wait_until(no_thread_beats, "the thread to end")
    if client.asynchronous:
        assert client.finish(running_tasks()) == []


def test_a_reservation_that_another_attempt_took_over_is_lost(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    with pytest.raises(LostReservation, match="taken"), client.leased(scope, "k", heartbeat=OFTEN) as op:
        assert not op.lost
        taken_over(observer, scope)
        wait_until(lambda: op.lost, "the heartbeat to find out")
        for call in (op.extend, op.defer, op.release):
            with pytest.raises(LostReservation):
                client.finish(call())
        op.complete(201)


def test_lost_connections_do_not_stop_it(
    client: Client, scope: str, observer: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with client.leased(scope, "k", heartbeat=OFTEN) as op:
        wait_for_a_beat(observer, scope)
        observer.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
        wait_for_a_beat(observer, scope)
        assert not op.lost
        op.complete(204)
    assert client.lookup(scope, "k").outcome == "completed"
    assert all(str(op.token) not in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("name", ["sync-connection", "async-connection"])
def test_a_single_connection_has_none_to_spare_for_it(open_client: OpenClient, scope: str, name: str) -> None:
    with pytest.raises(TypeError, match="second connection"):
        open_client(name).idem.leased(scope, "k", heartbeat=True)


def test_a_beat_that_waits_for_the_last_connection_neither_delays_the_completion_nor_follows_it(
    open_client: OpenClient, scope: str
) -> None:
    for name in ("sync-pool", "async-pool"):
        pool_of_one = open_client(name, pool_size=1)
        with pool_of_one.leased(scope, name, heartbeat=OFTEN) as op, pool_of_one.block(op.transaction):
            wait_until(
                lambda pool=pool_of_one.origin: pool.get_stats().get("requests_waiting", 0) > 0, "a beat to wait"
            )
            op.complete(204)
        wait_until(no_thread_beats, "the thread to end")
        assert not op.lost
        assert pool_of_one.lookup(scope, name).outcome == "completed"


def test_a_failed_transaction_lets_it_go_on(client: Client, scope: str, observer: psycopg.Connection) -> None:
    with client.leased(scope, "k", heartbeat=OFTEN) as op:
        with pytest.raises(Exception, match="_fkey"), client.block(op.transaction) as connection:
            client.execute(connection, "insert into invoices values (-1)")
            op.complete(201)
        wait_for_a_beat(observer, scope)
        op.complete(204)
    assert op.response.status == 204


@pytest.mark.parametrize(
    ("attempt", "asked", "expected"),
    [(1, None, 60), (2, None, 3), (2, timedelta(seconds=9), 9), (1, timedelta(seconds=9), 9)],
)
def test_the_length_of_the_lease_is_taken_from_the_database_alone(
    attempt: int, asked: timedelta | None, expected: int
) -> None:
    at = datetime.fromisoformat("2001-01-01T00:00:00+00:00")
    reservation = Reservation("started", attempt=attempt, created_at=at, lease_until=at + timedelta(seconds=60))
    assert lease_of(reservation, asked) == timedelta(seconds=expected)


def test_it_beats_three_times_a_lease_unless_told_otherwise() -> None:
    assert interval_of(True, timedelta(seconds=60)) == timedelta(seconds=20)
    assert interval_of(OFTEN, timedelta(seconds=60)) == OFTEN


def no_thread_beats() -> bool:
    """Tell whether every heartbeat's thread has ended."""
    return all(thread.name != "pyidem-heartbeat" for thread in threading.enumerate())


async def running_tasks() -> list[Any]:
    """Return the other tasks of the running loop that beat."""
    import asyncio  # noqa: PLC0415

    return [task for task in asyncio.all_tasks() if "Heartbeat" in repr(task.get_coro())]


@pytest.mark.parametrize(("month", "day"), [(3, 28), (10, 31)])
def test_a_lease_across_a_change_of_the_clocks_is_as_long_as_any(month: int, day: int) -> None:
    """The times come in the time zone of the session, where an hour is left out or comes twice."""
    change = datetime(2027, month, day, 1, tzinfo=UTC)
    reservation = Reservation(
        "started",
        attempt=1,
        created_at=(change - timedelta(seconds=20)).astimezone(ZoneInfo("Europe/Berlin")),
        lease_until=(change + timedelta(seconds=40)).astimezone(ZoneInfo("Europe/Berlin")),
    )
    assert lease_of(reservation, None) == timedelta(seconds=60)

"""What an application tests with the fixtures. Every test uses the same keys, and finds nothing of the others."""

# ruff: noqa: ARG001 - `again` is for running a test twice

from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import async_sessionmaker

from pyidem import AsyncIdem, Idem, OutcomeUnknown


@pytest.mark.parametrize("again", range(2))
@pytest.mark.parametrize("name", ["idem", "sqlalchemy_idem"])
def test_each_test_starts_with_free_keys(request, name, again):
    idem = request.getfixturevalue(name)
    with idem.atomic("client:1", "k") as op:
        assert op.started
        op.complete(201)
    with idem.atomic("client:1", "k") as op:
        assert not op.started
    with idem.leased("client:1", "l") as op, op.transaction():
        op.complete(201)
    assert op.response.status == 201


def test_the_work_is_rolled_back_too(idem, idem_connection):
    with idem.atomic("client:1", "k") as op:
        op.connection.execute("insert into orders (name) values ('sample')")
        op.complete(201)
    assert idem_connection.execute("select count(*) from orders where name = 'sample'").fetchone() == (1,)


def test_nothing_of_that_is_left(idem_connection):
    assert idem_connection.execute("select count(*) from orders where name = 'sample'").fetchone() == (0,)


@pytest.mark.parametrize("name", ["idem", "sqlalchemy_idem"])
def test_keys_expire_when_the_clock_is_moved(request, name, idem_clock):
    idem = request.getfixturevalue(name)
    with idem.atomic("client:1", "k") as op:
        op.complete(201)
    idem_clock.advance(timedelta(hours=23))
    assert idem.lookup("client:1", "k").outcome == "completed"
    idem_clock.advance(timedelta(hours=2))
    assert idem.lookup("client:1", "k").outcome == "absent"


@pytest.mark.parametrize("name", ["idem", "sqlalchemy_idem"])
def test_a_lease_lapses_when_it_is_told_to(request, name, idem_lapse):
    idem = request.getfixturevalue(name)
    token = idem.reserve("client:1", "k", mode="leased", lease=timedelta(minutes=7)).token
    assert token is not None
    assert idem.lookup("client:1", "k").outcome == "in_progress"
    idem_lapse("client:1", "k")
    idem_lapse("client:1", "k")
    with pytest.raises(OutcomeUnknown), idem.leased("client:1", "k") as op:
        _ = op.response


def test_a_lapse_moves_the_clock_no_further_than_it_must(idem, idem_lapse, idem_clock):
    idem.reserve("client:1", "short", mode="leased", lease=timedelta(minutes=1))
    idem.reserve("client:1", "long", mode="leased", lease=timedelta(minutes=2))
    idem_lapse("client:1", "short")
    assert idem.lookup("client:1", "long").outcome == "in_progress"
    assert timedelta(seconds=50) < idem_clock.offset < timedelta(seconds=61)
    idem_lapse("client:1", "long")
    assert idem.lookup("client:1", "long").outcome == "lapsed"


def test_what_has_no_lease_cannot_lapse(idem, idem_lapse):
    with pytest.raises(ValueError, match="absent"):
        idem_lapse("client:1", "k")
    with idem.atomic("client:1", "k") as op:
        with pytest.raises(ValueError, match="in_progress"):
            idem_lapse("client:1", "k")
        op.complete()
    with pytest.raises(ValueError, match="completed"):
        idem_lapse("client:1", "k")


def test_a_lapse_needs_a_connection_to_look_through(idem_lapse):
    with pytest.raises(RuntimeError, match="no connection"):
        idem_lapse("client:1", "k")


@pytest.fixture(scope="module")
def session_connection(idem_dsn):
    """A connection that no test rolls back."""
    with psycopg.connect(idem_dsn) as connection:
        yield connection


@pytest.mark.parametrize("again", range(2))
def test_the_clock_of_a_session_is_set_right_after_the_test(idem_clock, session_connection, again):
    assert session_connection.execute("select current_setting('idem.clock_offset', true)").fetchone()[0] in (None, "")
    session_connection.rollback()
    idem = Idem(session_connection)
    idem_clock.on(session_connection)
    key = f"session {again}"
    idem.reserve("client:1", key, mode="leased", lease=timedelta(minutes=1))
    assert idem.lookup("client:1", key).outcome == "in_progress"
    idem_clock.lapse("client:1", key)
    assert idem.lookup("client:1", key).outcome == "lapsed"


def test_a_connection_that_comes_later_sees_the_same_time(idem_clock, idem_dsn):
    idem_clock.advance(timedelta(hours=1))
    with psycopg.connect(idem_dsn) as connection:
        idem_clock.on(connection)
        with Idem(connection).leased("client:1", "later") as op:
            difference = op.reservation.created_at - connection.execute("select now()").fetchone()[0]
            connection.rollback()
            op.release()
    assert timedelta(minutes=59) < difference < timedelta(minutes=61)


async def test_an_asynchronous_application_tests_the_same_way(async_connection, async_clock):
    idem = AsyncIdem(async_sessionmaker(async_connection, join_transaction_mode="create_savepoint"))
    async with idem.atomic("client:1", "k") as op:
        await op.session.execute(text("insert into orders (name) values ('sample')"))
        op.complete(201)
    await async_clock.advance(timedelta(hours=25))
    assert (await idem.lookup("client:1", "k")).outcome == "absent"
    await idem.reserve("client:1", "l", mode="leased")
    await async_clock.lapse("client:1", "l")
    assert (await idem.lookup("client:1", "l")).outcome == "lapsed"

"""Several leased keys are reserved in one transaction, some of which others have."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.support.calls import reserve, set_policy, sqlstate_of
from tests.support.database import Database, advance_clock

BEFORE: list[list[str]] = [[], ["first"]]


@pytest.fixture
def batch(testing_db: Database) -> psycopg.Connection:
    """A session a quarter of an hour after the keys "again", under on_lapse retry, and "lapsed" have lapsed."""
    with testing_db.connect() as connection:
        set_policy(connection, "again", on_lapse="retry")
        connection.commit()
        reserve(connection, "again", mode="leased", policy="again")
        reserve(connection, "lapsed", mode="leased")
    later = later_session(testing_db)
    # nobody is to be waited for
    later.execute("set lock_timeout = '1ms'")
    later.commit()
    return later


def later_session(database: Database) -> psycopg.Connection:
    connection = database.connect()
    advance_clock(connection, timedelta(minutes=15))
    connection.commit()
    return connection


def outcomes(connection: psycopg.Connection, keys: list[str]) -> list[Any]:
    return [reserve(connection, key, mode="leased", policy="again").outcome for key in keys]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_a_key_that_another_has_locked_does_not_end_the_batch(
    testing_db: Database, batch: psycopg.Connection, before: list[str], isolation: str
) -> None:
    assert outcomes(later_session(testing_db), ["again"]) == ["started"]
    batch.execute(f"set transaction isolation level {isolation}".encode())
    assert outcomes(batch, [*before, "again", "next", "again", "last"]) == [
        *(["started"] * len(before)), "in_progress", "started", "in_progress", "started",
    ]  # fmt: skip


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_a_key_that_is_unresolved_does_not_end_the_batch(
    batch: psycopg.Connection, before: list[str], isolation: str
) -> None:
    batch.execute(f"set transaction isolation level {isolation}".encode())
    assert outcomes(batch, [*before, "lapsed", "next", "lapsed", "last"]) == [
        *(["started"] * len(before)), "unresolved", "started", "unresolved", "started",
    ]  # fmt: skip


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_a_write_between_is_found_all_the_same(batch: psycopg.Connection, isolation: str) -> None:
    batch.execute("create table effect (step text)")
    batch.commit()
    batch.execute(f"set transaction isolation level {isolation}".encode())
    outcomes(batch, ["first", "lapsed"])
    batch.execute("insert into effect values ('charged')")
    assert sqlstate_of(batch, "reserve", scope="shop", key="lapsed", mode="leased") == "IK004"


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_a_write_before_is_found_all_the_same(batch: psycopg.Connection, isolation: str) -> None:
    """What is noted where nothing is started does not hide it."""
    batch.execute("create table effect (step text)")
    batch.commit()
    batch.execute(f"set transaction isolation level {isolation}".encode())
    batch.execute("insert into effect values ('charged')")
    assert sqlstate_of(batch, "reserve", scope="shop", key="lapsed", mode="leased") == "IK004"

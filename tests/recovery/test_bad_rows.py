"""A row that raises when it is written."""

import json
from datetime import timedelta

import psycopg
import pytest

from tests.support.calls import claim_lapsed, reserve
from tests.support.database import Database, advance_clock

TRIGGER = """
create function refuse() returns trigger language plpgsql as $$begin raise exception 'not this one'; end$$;
create trigger refuse before update on idem_private.reservation
for each row when (old.key = 'k50') execute function refuse();
"""


def test_a_row_that_cannot_be_claimed_stops_no_other(testing_db: Database) -> None:
    connection = testing_db.connect(autocommit=True)
    keys = {f"k{number}" for number in range(100)}
    for key in keys:
        reserve(connection, key, mode="leased")
    connection.execute(TRIGGER)
    advance_clock(connection, timedelta(minutes=2))
    warnings: list[str | None] = []
    connection.add_notice_handler(lambda notice: warnings.append(notice.message_detail))
    assert {row.key for row in claim_lapsed(connection, max_rows=200)} == keys - {"k50"}
    (warning,) = warnings
    assert json.loads(warning or "") == {
        "code": "not_claimed",
        "scope": "shop",
        "key": "k50",
        "sqlstate": "P0001",
    }
    connection.execute("drop trigger refuse on idem_private.reservation")
    assert [row.key for row in claim_lapsed(connection)] == ["k50"]


def test_a_transaction_that_cannot_write_is_not_told_that_nothing_is_lapsed(testing_db: Database) -> None:
    connection = testing_db.connect(autocommit=True)
    reserve(connection, "k", mode="leased")
    advance_clock(connection, timedelta(minutes=2))
    connection.execute("set default_transaction_read_only = on")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        claim_lapsed(connection)

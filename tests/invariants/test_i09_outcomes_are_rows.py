"""I9: expected outcomes are rows, never exceptions: the caller's transaction stays usable."""

from datetime import timedelta

import pytest

from tests.support.calls import answers_of_every_call, complete, reserve
from tests.support.database import Database, advance_clock


def test_i9_no_outcome_spoils_the_callers_transaction(testing_db: Database) -> None:
    connection, other = testing_db.connect(), testing_db.connect()
    complete(connection, "done", reserve(connection, "done", fingerprint=b"f").token, status=201)
    connection.commit()
    reserve(connection, "lapsed", mode="leased")
    connection.commit()
    reserve(other, "busy")
    connection.execute("create table work (step int)")
    advance_clock(connection, timedelta(minutes=2))
    connection.commit()

    connection.execute("insert into work values (1)")
    outcomes = [
        reserve(connection, "done", fingerprint=b"f").outcome,
        reserve(connection, "done", fingerprint=b"g").outcome,
        reserve(connection, "lapsed").outcome,
        reserve(connection, "busy").outcome,
    ]
    connection.execute("insert into work values (2)")
    connection.commit()
    assert outcomes == ["replay", "mismatch", "unresolved", "in_progress"]
    assert connection.execute("select array_agg(step order by step) from work").fetchone() == ([1, 2],)


SETTINGS = [
    ("quote_all_identifiers", "on"),
    ("transform_null_equals", "on"),
    ("array_nulls", "off"),
    ("datestyle", "SQL, DMY"),
    ("timezone", "Pacific/Apia"),
    ("extra_float_digits", "-15"),
    ("search_path", ""),
    ("plan_cache_mode", "force_generic_plan"),
    ("plpgsql.extra_errors", "all"),
]


@pytest.mark.parametrize(("setting", "value"), SETTINGS)
def test_i9_no_setting_of_the_session_changes_an_answer(testing_db: Database, setting: str, value: str) -> None:
    connection = testing_db.connect()
    usual = answers_of_every_call(connection)
    connection.execute("select set_config(%s, %s, false)", [setting, value])
    connection.commit()
    assert answers_of_every_call(connection) == usual

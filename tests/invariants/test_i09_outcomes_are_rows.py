"""I9: expected outcomes are rows, never exceptions: the caller's transaction stays usable."""

from datetime import timedelta

from tests.support.calls import complete, reserve
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

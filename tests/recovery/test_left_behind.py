"""Atomic reservations that were committed unfinished, where the check at commit did not run."""

from datetime import timedelta

import psycopg
import pytest

from tests.support.calls import claim_lapsed, complete, lookup, reserve, resolve, sqlstate_of, stored
from tests.support.database import Database, advance_clock


def leave_behind(db: Database, *keys: str) -> None:
    """Commit atomic reservations without completing them, as where a replica applies changes."""
    connection = db.connect()
    connection.execute("set session_replication_role = replica")
    for key in keys:
        reserve(connection, key, fingerprint=b"f")
    connection.commit()


def listed(connection: psycopg.Connection) -> set[str]:
    return {key for (key,) in connection.execute("select key from idem_private.unfinished").fetchall()}


def test_it_is_listed_and_claimed_like_a_leased_one(testing_db: Database) -> None:
    leave_behind(testing_db, "k")
    connection = testing_db.connect(autocommit=True)
    assert listed(connection) == {"k"}
    assert connection.execute("select mode, outcome, unfinished, lapsed_at is not null from idem.keys").fetchall() == [
        ("atomic", "lapsed", True, True)
    ]
    (claim,) = claim_lapsed(connection)
    assert (claim.key, claim.attempt, claim.claims) == ("k", 1, 1)
    assert claim.lapsed_at == stored(connection, "k").created_at or claim.lapsed_at > claim.created_at
    assert reserve(connection, "k", mode="leased", fingerprint=b"f").outcome == "in_progress"
    assert reserve(connection, "k", mode="leased", fingerprint=b"g").outcome == "mismatch"
    assert complete(connection, "k", claim.token, status=201) is True
    assert listed(connection) == set()
    assert lookup(connection, "k").status == 201


def test_one_that_was_completed_in_time_is_not_listed(testing_db: Database) -> None:
    connection = testing_db.connect()
    connection.execute("set session_replication_role = replica")
    complete(connection, "k", reserve(connection, "k").token)
    connection.commit()
    assert listed(connection) == set()


def test_its_owner_may_complete_it_late_and_then_it_is_not_listed(testing_db: Database) -> None:
    connection = testing_db.connect()
    connection.execute("set session_replication_role = replica")
    token = reserve(connection, "k").token
    connection.commit()
    assert complete(connection, "k", token) is True
    connection.commit()
    assert listed(connection) == set()


def test_no_other_reservation_pays_for_the_list(testing_db: Database) -> None:
    connection = testing_db.connect()
    for key in ("a", "b"):
        token = reserve(connection, key).token
        assert listed(connection) == set()
        complete(connection, key, token)
        connection.commit()
    assert listed(connection) == set()


def test_where_no_trigger_runs_it_is_claimed_by_name(testing_db: Database) -> None:
    connection = testing_db.connect(autocommit=True)
    connection.execute("alter table idem_private.reservation disable trigger user")
    reserve(connection, "k")
    connection.execute("alter table idem_private.reservation enable trigger user")
    assert claim_lapsed(connection) == []
    assert claim_lapsed(connection, key="k") == []
    (claim,) = claim_lapsed(connection, scope="shop", key="k")
    assert claim.claims == 1
    assert claim_lapsed(connection, scope="shop", key="k") == []
    advance_clock(connection, timedelta(minutes=2))
    (again,) = claim_lapsed(connection)
    assert again.claims == 2


@pytest.mark.parametrize(
    ("action", "outcome"), [("complete", "completed"), ("release", "absent"), ("retry", "released")]
)
def test_an_operator_ends_it(testing_db: Database, action: str, outcome: str) -> None:
    leave_behind(testing_db, "k")
    connection = testing_db.connect()
    assert resolve(connection, "k", action) is True
    connection.commit()
    assert lookup(connection, "k").outcome == outcome
    assert listed(connection) == ({"k"} if action == "retry" else set())


@pytest.mark.parametrize("mode", ["atomic", "leased"])
def test_after_a_retry_the_next_attempt_is_like_any_other(testing_db: Database, mode: str) -> None:
    leave_behind(testing_db, "k")
    connection = testing_db.connect()
    resolve(connection, "k", "retry")
    connection.commit()
    answer = reserve(connection, "k", mode=mode, fingerprint=b"f")
    assert (answer.outcome, answer.attempt) == ("started", 2)
    if mode == "atomic":
        with pytest.raises(psycopg.Error) as unfinished:
            connection.commit()
        assert unfinished.value.sqlstate == "IK005"
        answer = reserve(connection, "k", mode=mode, fingerprint=b"f")
    else:
        connection.commit()
    assert complete(connection, "k", answer.token) is True
    connection.commit()
    assert listed(connection) == set()


def test_its_own_transaction_is_no_case_for_an_operator(testing_db: Database) -> None:
    connection = testing_db.connect()
    reserve(connection, "k")
    refused = sqlstate_of(connection, "resolve", scope="shop", key="k", action="retry", reason="asked", force=True)
    assert refused == "IK004"
    with pytest.raises(psycopg.Error) as unfinished:
        connection.commit()
    assert unfinished.value.sqlstate == "IK005"

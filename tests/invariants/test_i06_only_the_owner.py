"""I6: only the holder of the current token can complete, release, defer or extend. A stale token changes nothing."""

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from tests.support.calls import complete, lookup, owner_call, reserve, set_policy, sqlstate_of, stored
from tests.support.database import Database, advance_clock


@pytest.mark.parametrize("call", ["complete", "release", "defer", "extend"])
def test_i6_an_owner_back_from_the_dead_changes_nothing(testing_db: Database, call: str) -> None:
    connection = testing_db.connect()
    set_policy(connection, "again", on_lapse="retry")
    connection.commit()
    dead = reserve(connection, "k", mode="leased", policy="again")
    connection.commit()
    advance_clock(connection, timedelta(minutes=2))
    connection.commit()
    heir = reserve(connection, "k", mode="leased", policy="again")
    connection.commit()
    assert heir.token != dead.token
    assert heir.downstream_key == dead.downstream_key
    before = stored(connection, "k")
    for stale in (dead.token, uuid4(), None):
        assert sqlstate_of(connection, call, scope="shop", key="k", token=stale) == "IK002"
    assert stored(connection, "k") == before
    complete(connection, "k", heir.token, status=201)
    connection.commit()
    before = stored(connection, "k")
    assert sqlstate_of(connection, call, scope="shop", key="k", token=dead.token) == "IK002"
    assert stored(connection, "k") == before


@pytest.mark.parametrize("call", ["complete", "release", "defer", "extend"])
def test_i6_there_is_no_owner_of_a_key_that_was_never_reserved(db: Database, call: str) -> None:
    connection = db.connect()
    assert sqlstate_of(connection, call, scope="shop", key="k", token=uuid4()) == "IK003"


@pytest.mark.parametrize("call", ["release", "defer", "extend"])
def test_i6_leased_calls_do_not_fit_an_atomic_reservation(db: Database, call: str) -> None:
    connection = db.connect()
    owner = reserve(connection, "k")
    assert sqlstate_of(connection, call, scope="shop", key="k", token=owner.token) == "IK004"
    # the refusal was contained in a savepoint, and the reservation can still be completed
    assert complete(connection, "k", owner.token)
    connection.commit()


def test_i6_after_release_the_token_is_worth_nothing(testing_db: Database) -> None:
    connection = testing_db.connect()
    set_policy(connection, "again", on_lapse="retry")
    connection.commit()
    reserve(connection, "k", mode="leased", policy="again")
    connection.commit()
    advance_clock(connection, timedelta(minutes=2))
    connection.commit()
    second = reserve(connection, "k", mode="leased", policy="again")
    connection.commit()
    connection.execute("select idem.release('shop', 'k', %s)", [second.token])
    connection.commit()
    for call in ("complete", "defer", "extend"):
        assert sqlstate_of(connection, call, scope="shop", key="k", token=second.token) == "IK002"
    assert lookup(connection, "k").outcome == "released"


def test_i6_a_stale_token_is_not_told_that_it_has_done_this_before(testing_db: Database) -> None:
    """Even where what it asks for is what the heir has done."""
    connection = testing_db.connect(autocommit=True)
    set_policy(connection, "again", on_lapse="retry")
    for key in ("completed", "released"):
        dead = reserve(connection, key, mode="leased", policy="again")
        advance_clock(connection, timedelta(minutes=2))
        heir = reserve(connection, key, mode="leased", policy="again")
        if key == "completed":
            complete(connection, key, heir.token, status=201, body=b"{}")
            arguments = {"status": 201, "body": b"{}"}
        else:
            owner_call(connection, "release", key, heir.token)
            arguments = {}
        call = "complete" if key == "completed" else "release"
        assert sqlstate_of(connection, call, scope="shop", key=key, token=dead.token, **arguments) == "IK002"


def test_i6_no_error_names_a_token_or_a_body(db: Database) -> None:
    connection = db.connect()
    owner = reserve(connection, "k", mode="leased")
    connection.commit()
    secret = b"the secret body"
    wrong = uuid4()
    complete(connection, "k", owner.token, status=200, body=secret)
    connection.commit()
    for token, body in ((wrong, secret), (owner.token, b"the secret body, once more")):
        with pytest.raises(psycopg.Error) as caught:
            complete(connection, "k", token, status=200, body=body)
        connection.rollback()
        diagnosis = caught.value.diag
        told = f"{diagnosis.message_primary} {diagnosis.message_detail} {diagnosis.message_hint} {diagnosis.context}"
        assert str(owner.token) not in told
        assert str(wrong) not in told
        assert "secret body" not in told
        assert secret.hex() not in told

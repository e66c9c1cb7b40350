"""Owners that are slow, gone, or back from the dead, and clients whose clock is wrong."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from pyidem import Idem
from tests.support.calls import claim_lapsed, complete, lookup, owner_call, reserve, resolve, set_policy, sqlstate_of
from tests.support.database import Database, advance_clock

MINUTE = timedelta(minutes=1)


def at_work(db: Database, *, on_lapse: str = "hold") -> psycopg.Connection:
    """An owner's connection; every key of the policy has a lease of a minute."""
    owner = db.connect(autocommit=True)
    set_policy(owner, "minute", lease=MINUTE, on_lapse=on_lapse)
    owner.execute("create table booking (by text)")
    return owner


def let_pass(by: timedelta, *connections: psycopg.Connection) -> None:
    for connection in connections:
        advance_clock(connection, by)


@pytest.mark.parametrize("on_lapse", ["hold", "retry"])
def test_a_slow_owner_with_a_heartbeat_is_left_alone(testing_db: Database, on_lapse: str) -> None:
    owner = at_work(testing_db, on_lapse=on_lapse)
    others = testing_db.connect(autocommit=True)
    token = reserve(owner, "k", mode="leased", policy="minute").token
    for _ in range(10):
        let_pass(MINUTE * 0.9, owner, others)
        owner_call(owner, "extend", "k", token)
        assert reserve(others, "k", mode="leased", policy="minute").outcome == "in_progress"
        assert claim_lapsed(others) == []
    assert complete(owner, "k", token, status=201) is True


def test_a_slow_owner_without_one_may_still_complete_under_hold(testing_db: Database) -> None:
    owner = at_work(testing_db)
    others = testing_db.connect(autocommit=True)
    token = reserve(owner, "k", mode="leased", policy="minute").token
    let_pass(100 * MINUTE, owner, others)
    assert reserve(others, "k", mode="leased", policy="minute").outcome == "unresolved"
    assert complete(owner, "k", token, status=201) is True
    assert claim_lapsed(others) == []
    assert reserve(others, "k", policy="minute").status == 201


def heir(connection: psycopg.Connection) -> Any:
    return reserve(connection, "k", mode="leased", policy="minute").token


def resolver(connection: psycopg.Connection) -> Any:
    return claim_lapsed(connection)[0].token


@pytest.mark.parametrize("successor", [heir, resolver])
def test_a_slow_owner_that_has_lost_the_key_books_nothing(
    testing_db: Database, successor: Callable[[psycopg.Connection], Any]
) -> None:
    owner = at_work(testing_db, on_lapse="retry")
    others = testing_db.connect(autocommit=True)
    token = reserve(owner, "k", mode="leased", policy="minute").token
    let_pass(2 * MINUTE, owner, others)
    new_token = successor(others)
    owner.execute("begin")
    owner.execute("insert into booking values ('the owner')")
    with pytest.raises(psycopg.Error) as lost:
        complete(owner, "k", token, status=201)
    assert lost.value.sqlstate == "IK002"
    owner.execute("commit")
    with others.transaction():
        others.execute("insert into booking values ('its successor')")
        complete(others, "k", new_token, status=202)
    assert others.execute("select by from booking").fetchall() == [("its successor",)]
    assert lookup(owner, "k").status == 202


def taken_over(connection: psycopg.Connection) -> None:
    assert reserve(connection, "k", mode="leased", policy="minute").outcome == "started"


def claimed(connection: psycopg.Connection) -> None:
    assert len(claim_lapsed(connection)) == 1


def claimed_and_deferred(connection: psycopg.Connection) -> None:
    (claim,) = claim_lapsed(connection)
    assert owner_call(connection, "defer", "k", claim.token) is True


def claimed_and_completed(connection: psycopg.Connection) -> None:
    (claim,) = claim_lapsed(connection)
    assert complete(connection, "k", claim.token, status=201) is True


def completed_by_an_operator(connection: psycopg.Connection) -> None:
    assert resolve(connection, "k", "complete", status=201) is True


def retried_by_an_operator(connection: psycopg.Connection) -> None:
    assert resolve(connection, "k", "retry") is True


@pytest.mark.parametrize(
    "meanwhile",
    [
        taken_over,
        claimed,
        claimed_and_deferred,
        claimed_and_completed,
        completed_by_an_operator,
        retried_by_an_operator,
    ],
)
def test_an_owner_back_from_the_dead_changes_nothing(
    testing_db: Database, meanwhile: Callable[[psycopg.Connection], None]
) -> None:
    owner = at_work(testing_db, on_lapse="retry")
    others = testing_db.connect(autocommit=True)
    token = reserve(owner, "k", mode="leased", policy="minute").token
    let_pass(2 * MINUTE, owner, others)
    meanwhile(others)
    tables = "select r, u from idem_private.reservation as r left join idem_private.unfinished as u using (scope, key)"
    before = others.execute(tables).fetchall()
    named = {"scope": "shop", "key": "k", "token": token}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("complete", {"status": 201}),
        ("complete", {"status": 500}),
        ("release", {}),
        ("defer", {"reason": "late"}),
        ("extend", {}),
        ("checkpoint", {"recovery_point": "charged"}),
    ]
    assert [sqlstate_of(owner, name, **named, **more) for name, more in calls] == ["IK002"] * len(calls)
    assert others.execute(tables).fetchall() == before


@pytest.mark.parametrize("off", [-3600, 3600])
def test_a_client_whose_clock_is_an_hour_off_has_the_lease_that_others_have(
    testing_db: Database, monkeypatch: pytest.MonkeyPatch, off: int
) -> None:
    owner = at_work(testing_db)
    others = testing_db.connect(autocommit=True)
    right, right_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: right() + off)
    monkeypatch.setattr(time, "time_ns", lambda: right_ns() + off * 10**9)
    with (
        ConnectionPool(testing_db.dsn, min_size=1, open=True) as pool,
        Idem(pool).leased("shop", "k", policy="minute", heartbeat=True) as op,
    ):
        assert op.started
        stored = lookup(others, "k")
        assert stored.lease_until - stored.created_at == MINUTE
        assert claim_lapsed(others) == []
        let_pass(0.9 * MINUTE, owner, others)
        assert reserve(others, "k", mode="leased", policy="minute").outcome == "in_progress"
        let_pass(0.2 * MINUTE, owner, others)
        assert reserve(others, "k", mode="leased", policy="minute").outcome == "unresolved"
        with op.transaction():
            op.complete(201)
    assert lookup(others, "k").status == 201

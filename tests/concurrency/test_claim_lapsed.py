"""Resolvers beside each other and beside owners: each lapsed key goes to one, and none that is alive to any."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.support.calls import SCOPE, claim_lapsed, lookup, owner_call, reserve
from tests.support.database import Database, advance_clock
from tests.support.waiting import Background

RESOLVERS = 4


def leave_lapsed(connection: psycopg.Connection, *keys: str) -> dict[str, Any]:
    """Reserve keys, move this session's clock past their leases, and return their tokens."""
    tokens = {key: reserve(connection, key, mode="leased").token for key in keys}
    advance_clock(connection, timedelta(minutes=2))
    return tokens


def resolver_of(db: Database) -> psycopg.Connection:
    resolver = db.connect(autocommit=True)
    advance_clock(resolver, timedelta(minutes=2))
    return resolver


@pytest.fixture
def paused(testing_db: Database, in_thread: Callable[[Callable[[], Any]], Background[Any]]) -> Callable[..., Any]:
    """Claim everything, and do something else after the look and the claim of the first key, before the second's."""

    def claim(meanwhile: Callable[[], object]) -> list[str]:
        hold, resolver = testing_db.connect(), resolver_of(testing_db)
        hold.execute("select from idem_private.unfinished where key = 'first' for update")
        claiming = in_thread(lambda: claim_lapsed(resolver))
        testing_db.wait_until_blocked(resolver)
        meanwhile()
        hold.rollback()
        return [row.key for row in claiming.result()]

    return claim


def test_a_key_that_is_renewed_after_the_look_is_not_claimed(testing_db: Database, paused: Callable[..., Any]) -> None:
    owner = testing_db.connect(autocommit=True)
    tokens = leave_lapsed(owner, "first", "second")
    assert paused(lambda: owner_call(owner, "extend", "second", tokens["second"])) == ["first"]
    # nor has it been locked meanwhile
    assert owner_call(owner, "extend", "second", tokens["second"]) is not None


def test_a_key_that_is_put_off_after_the_look_is_not_claimed(testing_db: Database, paused: Callable[..., Any]) -> None:
    owner = testing_db.connect(autocommit=True)
    tokens = leave_lapsed(owner, "first", "second")
    put_off = {"retry_in": timedelta(hours=1)}
    assert paused(lambda: owner_call(owner, "defer", "second", tokens["second"], **put_off)) == ["first"]


def test_a_key_that_is_claimed_after_the_look_is_not_claimed_again(
    testing_db: Database, paused: Callable[..., Any]
) -> None:
    leave_lapsed(testing_db.connect(autocommit=True), "first", "second")
    another = resolver_of(testing_db)
    assert paused(lambda: claim_lapsed(another, key="second")) == ["first"]
    assert lookup(another, "second").outcome == "in_progress"


def test_a_lapsed_key_goes_to_one_of_many_resolvers(
    testing_db: Database, in_thread: Callable[[Callable[[], Any]], Background[Any]]
) -> None:
    keys = [f"k{number}" for number in range(100)]
    owner = testing_db.connect(autocommit=True)
    leave_lapsed(owner, *keys)
    resolvers = [resolver_of(testing_db) for _ in range(RESOLVERS)]

    def work(resolver: psycopg.Connection) -> list[str]:
        claimed: list[str] = []
        while rows := claim_lapsed(resolver, max_rows=3):
            claimed += [row.key for row in rows]
        return claimed

    working = [in_thread(lambda resolver=resolver: work(resolver)) for resolver in resolvers]
    claimed = Counter(key for each in working for key in each.result())
    assert claimed == Counter(keys)
    counts = owner.execute("select claims, count(*) from idem.keys where scope = %s group by 1", [SCOPE]).fetchall()
    assert counts == [(1, len(keys))]

"""What the machine has found, each as the shortest history that shows it."""

from uuid import UUID

import psycopg
import pytest

from tests.support.calls import SCOPE, complete, lookup, owner_call, reserve, sqlstate_of
from tests.support.database import Database

MARK = UUID(int=0)


def test_a_mark_is_completed_by_nobody_not_even_again(tx: psycopg.Connection) -> None:
    tx.execute("select idem.once(%s, 'k')", [SCOPE])
    assert sqlstate_of(tx, "complete", scope=SCOPE, key="k", token=MARK) == "IK002"


def test_a_completion_that_waited_for_nothing_in_the_end_counts_from_after_its_wait(db: Database, in_thread) -> None:  # type: ignore[no-untyped-def]
    holder, owner = db.connect(), db.connect()
    token = reserve(owner, "k", mode="leased").token
    owner.commit()
    owner_call(holder, "extend", "k", token)
    completing = in_thread(lambda: complete(owner, "k", token))
    db.wait_until_blocked(owner)
    waited_until = holder.execute("select clock_timestamp()").fetchone()
    holder.rollback()
    assert completing.result()
    assert waited_until is not None
    assert lookup(owner, "k").completed_at > waited_until[0]


def test_defer_does_not_hide_what_the_transaction_has_written_before(db: Database) -> None:
    connection = db.connect()
    connection.execute("create table effect ()")
    connection.commit()
    token = reserve(connection, "first", mode="leased").token
    connection.execute("insert into effect default values")
    owner_call(connection, "defer", "first", token)
    assert sqlstate_of(connection, "reserve", scope=SCOPE, key="second", mode="leased") == "IK004"


def test_a_defer_counts_as_written(db: Database) -> None:
    connection = db.connect()
    token = reserve(connection, "first", mode="leased").token
    owner_call(connection, "defer", "first", token)
    assert sqlstate_of(connection, "reserve", scope=SCOPE, key="second", mode="leased") == "IK004"


@pytest.mark.parametrize(
    "call",
    [
        "select idem.reserve('shop', 'k')",
        "select idem.reserve('shop', 'k', mode => 'leased')",
        "select idem.once('shop', 'k')",
        "select idem.once_many('shop', '{j,k}')",
        "select idem.run('shop', 'k', null, 'pay(jsonb)', 'null')",
        "select idem.extend('shop', 'k', gen_random_uuid())",
    ],
)
@pytest.mark.parametrize("isolation", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
def test_an_old_snapshot_does_not_wait_for_who_changes_what_it_cannot_see(
    db: Database, call: str, isolation: psycopg.IsolationLevel
) -> None:
    old, owner = db.connect(), db.connect()
    owner.execute(
        "create function pay(jsonb) returns idem.response language sql return row(201, null, null)::idem.response"
    )
    owner.commit()
    old.set_isolation_level(isolation)
    # a wait would end in another error; lock_timeout would give the very one that is expected
    old.execute("set statement_timeout = '20s'")
    old.commit()
    lookup(old, "k")
    token = reserve(owner, "k", mode="leased").token
    owner.commit()
    complete(owner, "k", token)
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute(call)
    owner.rollback()

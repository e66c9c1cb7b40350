"""I10: different (scope, key) pairs never affect each other: not by hashing, concatenation or collation."""

import psycopg
import pytest

from tests.support.calls import answers_of_every_call, complete, lookup, reserve
from tests.support.database import Database

PAIRS = [("a", "bc"), ("ab", "c"), ("a", "BC"), ("A", "bc"), ("a:b", "c"), ("a", "b:c"), ("1:a", "bc"), ("1", "a:bc")]


def test_i10_no_two_pairs_are_taken_for_the_same(db: Database) -> None:
    connection = db.connect()
    answers = [reserve(connection, key, scope=scope, mode="leased") for scope, key in PAIRS]
    connection.commit()
    assert [answer.outcome for answer in answers] == ["started"] * len(PAIRS)
    assert len({answer.downstream_key for answer in answers}) == len(PAIRS)
    assert len({answer.token for answer in answers}) == len(PAIRS)


def test_i10_no_two_pairs_share_a_lock(db: Database) -> None:
    """Each in a session of its own, whose lock is held while the next one reserves."""
    assert [reserve(db.connect(), key, scope=scope).outcome for scope, key in PAIRS] == ["started"] * len(PAIRS)


def test_i10_scopes_that_a_collation_holds_equal_are_two(db: Database) -> None:
    connection = db.connect()
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    reserve(connection, "k", scope=composed, mode="leased")
    connection.commit()
    assert lookup(connection, "k", scope=decomposed).outcome == "absent"


@pytest.mark.parts
def test_i10_a_callers_collation_changes_nothing(db: Database) -> None:
    connection = db.connect()
    connection.execute("create collation caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    connection.commit()
    reserve(connection, "Key", mode="leased")
    connection.commit()
    other = db.connect()
    for key, session in (("key", connection), ("kEY", other), ("KEY", connection)):
        row = session.execute(
            f"select outcome from idem.reserve('shop' collate caseless, '{key}' collate caseless)"
        ).fetchone()
        assert row == ("started",)


@pytest.mark.parts
@pytest.mark.parametrize("call", ["complete", "extend", "checkpoint", "release", "defer", "lookup", "once", "run"])
def test_i10_a_callers_collation_changes_nothing_in_any_call(db: Database, call: str) -> None:
    """Two keys that differ in case only: the call is for the second."""
    connection = db.connect(autocommit=True)
    connection.execute("create collation caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    connection.execute(
        "create function pay(args jsonb) returns idem.response language sql as"
        " 'select null::int, null::jsonb, null::bytea'"
    )
    first = reserve(connection, "KEY", mode="leased")
    name = "'shop' collate caseless, 'key' collate caseless"
    calls = {
        "lookup": (f"(idem.lookup({name})).outcome", "absent"),
        "once": (f"idem.once({name})", "first"),
        "run": (f"(idem.run({name}, null, 'pay(jsonb)', 'null')).outcome", "started"),
        "checkpoint": (f"idem.checkpoint({name}, '{first.token}', 'charged')", "IK003"),
    }
    statement, expected = calls.get(call, (f"idem.{call}({name}, '{first.token}')", "IK003"))
    try:
        row = connection.execute(f"select {statement}").fetchone()
    except psycopg.Error as error:
        row = (error.sqlstate,)
    assert row == (expected,)


@pytest.mark.parts
def test_i10_a_callers_collation_changes_nothing_in_a_batch(db: Database) -> None:
    connection = db.connect()
    connection.execute("create collation caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    connection.execute("select idem.once('shop', 'key')")
    batch = "('shop' collate caseless, '{KEY,key,Key}'::text[] collate caseless)"
    answers = connection.execute(f"select key, outcome from idem.once_many{batch}").fetchall()
    assert answers == [("KEY", "first"), ("key", "duplicate"), ("Key", "first")]
    assert connection.execute("select idem.once_undo('shop', '{Key}'::text[] collate caseless)").fetchone() == (1,)
    assert connection.execute(f"select key, outcome from idem.once_many{batch}").fetchall() == [
        ("KEY", "duplicate"),
        ("key", "duplicate"),
        ("Key", "first"),
    ]


@pytest.mark.parts
@pytest.mark.parametrize(("locale", "deterministic"), [("de", "true"), ("und-u-ks-level2", "false")])
def test_i10_a_callers_collation_is_never_in_the_way(testing_db: Database, locale: str, deterministic: str) -> None:
    """Scopes, keys and what else is text may come from columns with a collation of their own."""
    connection = testing_db.connect()
    plain = answers_of_every_call(connection)
    connection.execute(
        f"create collation theirs (provider = icu, locale = '{locale}', deterministic = {deterministic})".encode()
    )
    connection.commit()
    assert answers_of_every_call(connection, " collate theirs") == plain


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_i10_fifty_keys_in_fifty_transactions_are_all_started(db: Database, isolation: str) -> None:
    connections = [db.connect() for _ in range(50)]
    for number, connection in enumerate(connections):
        connection.execute(f"set transaction isolation level {isolation}")
        assert reserve(connection, f"k{number}").outcome == "started"


def test_i10_stored_scopes_and_keys_are_compared_by_their_bytes(db: Database) -> None:
    """Whatever the collation of the database."""
    columns = (
        db.connect()
        .execute(
            "select a.attrelid::regclass::text, a.attname, c.collname from pg_attribute as a"
            " inner join pg_class as t on a.attrelid = t.oid and t.relkind = 'r'"
            " inner join pg_collation as c on a.attcollation = c.oid"
            " where t.relnamespace = 'idem_private'::regnamespace and a.attname in ('scope', 'key')"
        )
        .fetchall()
    )
    assert {collation for _, _, collation in columns} == {"C"}
    assert ("idem_private.reservation", "key", "C") in columns


def test_i10_a_row_left_behind_stops_no_other_keys_commit(db: Database) -> None:
    with db.connect() as restored:
        restored.execute("set session_replication_role = replica")
        reserve(restored, "left behind")
    connection = db.connect()
    assert complete(connection, "k", reserve(connection, "k").token) is True
    connection.commit()
    assert lookup(connection, "left behind").outcome == "lapsed"

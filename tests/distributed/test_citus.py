"""A real Citus cluster: the coordinator that PYIDEM_CITUS_DSN leads to, in a database where pyidem may be installed."""

import os
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest

from tests.support.database import ROOT

DSN = os.environ.get("PYIDEM_CITUS_DSN")
pytestmark = [pytest.mark.citus, pytest.mark.skipif(DSN is None, reason="PYIDEM_CITUS_DSN names no coordinator")]


@pytest.fixture(scope="module")
def coordinator() -> Iterator[psycopg.Connection]:
    """The coordinator, with pyidem installed and distributed, and a business table beside the keys."""
    assert DSN is not None
    with psycopg.connect(DSN, autocommit=True) as connection:
        if connection.execute("select to_regnamespace('idem_private')").fetchone() == (None,):
            connection.execute((ROOT / "migrations" / "frozen" / "idem_0001" / "up.sql").read_bytes())
        connection.execute("select idem.distribute()")
        connection.execute("create table if not exists idem_test_orders (client text, amount int)")
        placed = "select from pg_dist_partition where logicalrelid = 'idem_test_orders'::regclass"
        if connection.execute(placed).fetchone() is None:
            connection.execute(
                "select create_distributed_table("
                "'idem_test_orders', 'client', colocate_with => 'idem_private.reservation')"
            )
        yield connection


@pytest.fixture
def scope() -> str:
    return f"client:{uuid4()}"


def one(connection: psycopg.Connection, statement: str, *arguments: object) -> object:
    row = connection.execute(statement.encode(), arguments).fetchone()
    assert row is not None
    return row[0]


def test_an_atomic_operation_is_replayed(coordinator: psycopg.Connection, scope: str) -> None:
    for expected in ("started", "replay"):
        with coordinator.transaction():
            row = coordinator.execute("select outcome, token from idem.reserve(%s, 'k')", [scope]).fetchone()
            assert row is not None
            assert row[0] == expected
            if expected == "started":
                coordinator.execute("insert into idem_test_orders values (%s, 1)", [scope])
                coordinator.execute("select idem.complete(%s, 'k', %s, 201)", [scope, row[1]])
    assert one(coordinator, "select count(*) from idem_test_orders where client = %s", scope) == 1


def test_a_repeated_reserve_of_the_same_transaction_is_its_own(coordinator: psycopg.Connection, scope: str) -> None:
    token = uuid4()
    with coordinator.transaction(force_rollback=True):
        for _ in range(2):
            assert one(coordinator, "select outcome from idem.reserve(%s, 'k', token => %s)", scope, token) == "started"


def test_a_leased_operation_is_completed_in_another_transaction(coordinator: psycopg.Connection, scope: str) -> None:
    token = one(coordinator, "select token from idem.reserve(%s, 'k', mode => 'leased')", scope)
    assert one(coordinator, "select outcome from idem.reserve(%s, 'k', mode => 'leased')", scope) == "in_progress"
    assert one(coordinator, "select idem.complete(%s, 'k', %s, 200)", scope, token) is True


def test_an_unfinished_atomic_key_is_unresolved_and_claimable(coordinator: psycopg.Connection, scope: str) -> None:
    coordinator.execute("select from idem.reserve(%s, 'k')", [scope])
    assert one(coordinator, "select outcome from idem.reserve(%s, 'k')", scope) == "unresolved"
    assert one(coordinator, "select key from idem.claim_lapsed(scope => %s, key => 'k')", scope) == "k"


def test_messages_are_marked_once(coordinator: psycopg.Connection, scope: str) -> None:
    assert one(coordinator, "select idem.once(%s, 'm')", scope) == "first"
    marks = coordinator.execute("select outcome from idem.once_many(%s, array['m', 'n', 'n'])", [scope]).fetchall()
    assert marks == [("duplicate",), ("first",), ("duplicate",)]


def test_operators_calls_work_on_all_nodes(coordinator: psycopg.Connection, scope: str) -> None:
    coordinator.execute("select from idem.reserve(%s, 'k', mode => 'leased')", [scope])
    assert one(coordinator, "select count(*) from idem.health() where check_name = 'lapsed'") == 1
    assert one(coordinator, "select count(*) > 0 from idem.stats() where state = 'in_progress'") is True
    assert one(coordinator, "select count(*) from idem.keys where scope = %s", scope) == 1
    assert one(coordinator, "select idem.purge() >= 0") is True
    assert one(coordinator, "select count(*) from idem.history(%s, 'k')", scope) == 1
    assert one(coordinator, "select idem.resolve(%s, 'k', 'release', 'a test', force => true)", scope) is True
    assert one(coordinator, "select idem.forget(%s)", scope) == 0

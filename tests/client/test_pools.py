"""Pools smaller than the number of callers, and PgBouncer in transaction mode."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg_pool import ConnectionPool, PoolTimeout
from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker

from pyidem import Idem
from pyidem._adapters.psycopg import PsycopgUnit
from tests.client.flavours import FLAVOURS, OpenClient
from tests.support.database import Database

Count = Callable[[str], int]


def atomic(idem: Idem[Any], scope: str, key: str) -> int | None:
    """Answer under a key, in an atomic block."""
    with idem.atomic(scope, key) as op:
        if op.started:
            op.complete(201)
    return op.response.status


def leased(idem: Idem[Any], scope: str, key: str) -> int | None:
    """Answer under a key, in a leased block."""
    with idem.leased(scope, key) as op:
        if op.started:
            with op.transaction():
                op.complete(201)
    return op.response.status


@pytest.mark.parametrize("operation", [atomic, leased])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("name", ["sync-pool", "sync-engine", "sync-sessionmaker"])
def test_many_threads_share_few_connections(
    open_client: OpenClient, scope: str, name: str, size: int, operation: Callable[..., int | None]
) -> None:
    idem = open_client(name, pool_size=size).idem
    with ThreadPoolExecutor(40) as threads:
        statuses = list(threads.map(lambda number: operation(idem, scope, f"k{number}"), range(40)))
    assert statuses == [201] * 40


@pytest.mark.parametrize("name", ["sync-pool", "sync-sessionmaker"])
def test_of_many_simultaneous_attempts_one_does_the_work(
    open_client: OpenClient, scope: str, name: str, orders: Count
) -> None:
    client = open_client(name, pool_size=8)

    def attempt(_: int) -> str:
        with client.idem.atomic(scope, "k") as op:
            if op.started:
                client.insert(op.connection, scope)
                op.complete(201)
        return str(op.outcome)

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(attempt, range(200)))
    assert outcomes.count("started") == 1
    assert set(outcomes) <= {"started", "replay", "in_progress"}
    assert orders(scope) == 1


@pytest.mark.parametrize("name", [name for name in FLAVOURS if not name.endswith("connection")])
def test_a_pooled_connection_that_the_server_has_closed_is_replaced_at_entry(
    open_client: OpenClient, scope: str, observer: psycopg.Connection, name: str
) -> None:
    client = open_client(name)
    for mode in (client.atomic, client.leased):
        client.version()
        observer.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
        with mode(scope, mode.__name__) as op:
            op.complete(201)
        assert (op.outcome, op.response.status) == ("started", 201)


def test_a_lost_acknowledgement_does_not_lock_the_owner_out(
    open_client: OpenClient, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_client("sync-pool")
    once = PsycopgUnit.once
    lost = iter([True])

    def lose_the_first(unit: PsycopgUnit, call: Any) -> Any:
        answer = once(unit, call)
        if next(lost, False):
            unit.handle.close()
            raise psycopg.OperationalError("the connection was lost after COMMIT")
        return answer

    monkeypatch.setattr(PsycopgUnit, "once", lose_the_first)
    with client.leased(scope, "k") as op:
        assert (op.outcome, op.attempt) == ("started", 1)
        op.complete(201)
    assert client.lookup(scope, "k").outcome == "completed"


def test_a_pool_that_is_exhausted_says_so_at_once_and_nothing_is_reserved(client_db: Database, scope: str) -> None:
    with ConnectionPool(client_db.dsn, min_size=1, max_size=1, timeout=0.1) as pool, pool.connection() as taken:
        with pytest.raises(PoolTimeout), Idem(pool).atomic(scope, "k"):
            pytest.fail("the block was entered")
        row = taken.execute("select outcome from idem.lookup(%s, 'k')", [scope]).fetchone()
    assert row == ("absent",)


@pytest.mark.parametrize("operation", [atomic, leased])
@pytest.mark.parametrize("source", ["pool", "sessionmaker"])
def test_behind_pgbouncer_in_transaction_mode_nothing_fails(
    pooler: str, scope: str, observer: psycopg.Connection, source: str, operation: Callable[..., int | None]
) -> None:
    threads, operations = 8, 40
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(pooler), pool_size=threads)
    with ConnectionPool(pooler, min_size=threads, max_size=threads) as pool, ThreadPoolExecutor(threads) as executor:
        idem: Idem[Any] = Idem(pool) if source == "pool" else Idem(sessionmaker(engine))
        keys = [f"{thread}-{number}" for thread in range(threads) for number in range(operations)]
        assert list(executor.map(lambda key: operation(idem, scope, key), keys)) == [201] * (threads * operations)
    engine.dispose()
    row = observer.execute(
        "select count(*) from idem.keys where scope = %s and completed_at is not null", [scope]
    ).fetchone()
    assert row == (threads * operations,)

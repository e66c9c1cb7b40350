"""Round trips as a network sees them: counted by the proxy of the benchmark, whatever the driver's trace says."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pyidem import Idem
from tests.bench.proxy import Proxy
from tests.support.database import Database

WORK = "insert into orders (amount) values (1)"


@contextmanager
def counting(dsn: str) -> Iterator[tuple[str, Proxy]]:
    """Run a proxy without delay in a thread; yield the connection string through it."""
    target = conninfo_to_dict(dsn)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    proxy = Proxy(str(target["host"]), int(str(target["port"])), delay=0)
    try:
        port = asyncio.run_coroutine_threadsafe(proxy.start(), loop).result()
        yield make_conninfo(dsn, port=port), proxy
    finally:
        asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def orders(db: Database) -> Database:
    with db.connect(autocommit=True) as connection:
        connection.execute("create table orders (amount int)")
    return db


def test_an_atomic_operation_costs_at_most_one_round_trip_more_than_the_work_alone(orders: Database) -> None:
    with counting(orders.dsn) as (dsn, proxy), psycopg.connect(dsn) as connection:
        idem = Idem(connection)

        def alone() -> None:
            with connection.transaction():
                connection.execute(WORK)

        def protected(key: str) -> None:
            with idem.atomic("shop", key) as op:
                op.connection.execute(WORK)
                op.complete(201)

        alone()
        protected("warm")
        costs = []
        for operation in (alone, lambda: protected("k")):
            before = proxy.round_trips
            operation()
            costs.append(proxy.round_trips - before)
    work, atomic = costs
    assert work >= 1
    assert atomic <= work + 1

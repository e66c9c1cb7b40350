"""500 clients behind a PgBouncer in transaction mode, on a few server connections."""

import asyncio
from collections import Counter
from pathlib import Path

import psycopg

from pyidem import AsyncIdem
from tests.support.database import Database
from tests.support.pgbouncer import pgbouncer

CLIENTS, KEYS, CONNECTIONS = 500, 100, 8


async def test_each_key_of_500_clients_takes_effect_once(db: Database, tmp_path: Path) -> None:
    with db.connect(autocommit=True) as connection:
        connection.execute("create table orders (key text)")

    async def client(dsn: str, number: int) -> str:
        key = f"k{number % KEYS}"
        async with await psycopg.AsyncConnection.connect(dsn, prepare_threshold=None) as connection:
            while True:
                async with AsyncIdem(connection).atomic("shop", key) as op:
                    if op.started:
                        await op.connection.execute("insert into orders values (%s)", [key])
                        op.complete(201)
                if op.outcome != "in_progress":
                    return op.outcome
                await asyncio.sleep(0)

    with pgbouncer(db.dsn, tmp_path, connections=CONNECTIONS, clients=2 * CLIENTS) as dsn:
        outcomes = Counter(await asyncio.gather(*(client(dsn, number) for number in range(CLIENTS))))

    assert outcomes == {"started": KEYS, "replay": CLIENTS - KEYS}
    with db.connect() as connection:
        assert connection.execute("select count(*), count(distinct key) from orders").fetchone() == (KEYS, KEYS)

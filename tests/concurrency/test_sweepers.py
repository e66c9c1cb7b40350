"""Several sweepers at once, while owners come back: each key is settled by exactly one of them."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random

import psycopg
import pytest

from pyidem import LostReservation, Swept, translate
from tests.support.database import Database

KEYS = 1000
_SWEEPER = """
import asyncio, json, sys
from dataclasses import asdict
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from pyidem import AsyncIdem, AsyncSweeper, Idem, Sweeper

flavour, dsn = sys.argv[1:]
insert = "insert into settled (key, by) values (%s, %s)"

def settle(op):
    with op.transaction() as connection:
        connection.execute(insert, [op.key, flavour])
        op.complete(200, flavour)

async def settle_async(op):
    async with op.transaction() as connection:
        await connection.execute(insert, [op.key, flavour])
        op.complete(200, flavour)

async def run():
    async with AsyncConnectionPool(dsn, open=False, min_size=4, max_size=4) as pool:
        ready()
        return await AsyncSweeper(AsyncIdem(pool), settle_async, concurrency=2).run_once()

def ready():
    print("ready", flush=True)
    sys.stdin.readline()

if flavour.startswith("async"):
    swept = asyncio.run(run())
else:
    with ConnectionPool(dsn, min_size=4, max_size=4) as pool:
        ready()
        swept = Sweeper(Idem(pool), settle, concurrency=2).run_once()
print(json.dumps(asdict(swept)))
"""


@pytest.fixture
def lapsed(db: Database) -> Database:
    """A thousand lapsed keys; the token of each can be computed from its name."""
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("create table settled (key text not null, by text not null)")
        token, keys = "md5('token ' || n)::uuid", f"generate_series(1, {KEYS}) as n"
        connection.execute(f"select idem.reserve('s', n::text, mode => 'leased', token => {token}) from {keys}")
        connection.execute(f"select idem.defer('s', n::text, {token}) from {keys}")
    return db


def wake_up(database: Database, seed: int) -> int:
    """Come back as the owner of every fourth key, and go on: at once, or with a sign of life first. Tell how often."""
    keys = list(range(seed + 1, KEYS + 1, 4))
    Random(seed).shuffle(keys)
    settled = 0
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        for key in keys:
            row = connection.execute("select md5('token ' || %s)::uuid", [str(key)]).fetchone()
            assert row is not None
            named = {"key": str(key), "token": row[0]}
            try:
                if key % 3 == 0:
                    connection.execute("select idem.extend('s', %(key)s, %(token)s)", named)
                with connection.transaction():
                    connection.execute("insert into settled values (%(key)s, 'owner')", named)
                    connection.execute(
                        "select idem.complete('s', %(key)s, %(token)s, 200, body => convert_to('owner', 'UTF8'))", named
                    )
                settled += 1
            except psycopg.Error as error:
                if not isinstance(translate(error), LostReservation):
                    raise
    return settled


def test_four_sweepers_and_the_owners_settle_each_of_a_thousand_keys_once(lapsed: Database) -> None:
    command = [sys.executable, "-c", _SWEEPER]
    sweepers = [
        subprocess.Popen(
            [*command, flavour, lapsed.dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for flavour in ("sync-1", "sync-2", "async-1", "async-2")
    ]
    try:
        for sweeper in sweepers:
            assert sweeper.stdout is not None
            assert sweeper.stdout.readline() == "ready\n"
        with ThreadPoolExecutor(4) as threads:
            owners = [threads.submit(wake_up, lapsed, seed) for seed in range(4)]
            for sweeper in sweepers:
                assert sweeper.stdin is not None
                sweeper.stdin.write("go\n")
            said = [sweeper.communicate(timeout=120)[0] for sweeper in sweepers]
            by_owners = sum(owner.result() for owner in owners)
    finally:
        for sweeper in sweepers:
            sweeper.kill()
            sweeper.wait()

    swept = [Swept(**json.loads(each)) for each in said]
    assert all(each == Swept(completed=each.completed) for each in swept)
    assert by_owners + sum(each.completed for each in swept) == KEYS
    assert by_owners > 0
    assert sum(each.completed > 0 for each in swept) > 1
    with psycopg.connect(lapsed.dsn) as connection:
        assert connection.execute("select count(*), count(distinct key) from settled").fetchone() == (KEYS, KEYS)
        mixed_up = connection.execute(
            "select count(*) from settled as s cross join lateral idem.lookup('s', s.key) as l"
            " where l.outcome <> 'completed' or convert_from(l.body, 'UTF8') <> s.by"
        ).fetchone()
        assert mixed_up == (0,)

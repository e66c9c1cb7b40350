"""What it costs as keys, bodies, clients on one key and retention grow; and what a key costs, for the capacity page."""

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
from rich.console import Console

from tests.bench.results import Results, Target, Turn, interleaved, pivot, show, targets_table
from tests.bench.server import HERE, Server
from tests.support.database import run_psql

KEYS, BODIES, CONTENTION, RETENTION, CAPACITY = "keys", "bodies", "contention", "retention", "capacity"
FEWEST = 10_000
SIZES = [2**power for power in range(10, 21, 2)]
HOT = [1, 10, 100, 10_000]
HOT_CLIENTS = 64
RETENTIONS = {2: 6, 4: 10, 8: 16}
TRANSACTIONS = 2000
CAPACITY_CLIENTS = 4
AFTER_CHECKPOINT = "WAL bytes, atomic, after a checkpoint"
# In one transaction with TRUNCATE, so that wal_level minimal writes no WAL for it; indexes are built afterwards.
FILL = """
begin;
truncate idem_private.reservation;
alter table idem_private.reservation drop constraint reservation_pkey;
drop index idem_private.reservation_expiry;
set local session_replication_role = replica;
insert into idem_private.reservation (
    scope, key, fingerprint, policy, created_at, expires_at, owned_at, owner_xid, token, attempt, leased, must_complete,
    completed_at, status, headers, body
)
select
    'client', 'live-' || n, sha256('request'), 'default', now(), now() + interval '24 hours', now(), '1',
    gen_random_uuid(), 1, false, true, now(), 201, '[["content-type", "application/json"]]',
    '{"id": 1234567, "amount": 1}'
from generate_series(1, %(keys)s) as n;
set local maintenance_work_mem = '1GB';
alter table idem_private.reservation add primary key (scope, key);
create index reservation_expiry on idem_private.reservation ((coalesce(purge_at, expires_at)));
commit;
"""
BODY_SETUP = """
create table bodies as
select s.size, substring(b.body from 1 for s.size) as body
from unnest(%(sizes)s::int[]) as s (size)
cross join (
    select string_agg(sha256(n::text::bytea), '' order by n) as body from generate_series(1, %(digests)s) as n
) as b;
alter table bodies add primary key (size);
select idem.complete('client', 'body-' || b.size, r.token, 201, null, b.body)
from bodies as b cross join lateral idem.reserve('client', 'body-' || b.size, sha256('request')) as r;
"""


def measure(server: Server, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Run all parts."""
    capacity(server, results)
    keys(server, options, results, console)
    bodies(server, options, results, console)
    contention(server, options, results, console)
    retention(server, results, console)


def keys(server: Server, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Measure databases that hold different numbers of keys, in turns."""
    turns = []
    count = FEWEST
    while count <= options.keys:
        console.print(f"filling a database with {count:,} keys")
        dsn = server.install(f"keys_{count}", setup=False)
        server.execute(FILL % {"keys": count}, dsn=dsn)
        _sizes(server, dsn, count, results)
        run_psql(server.cluster, dsn, HERE / "setup.sql")
        define = {"keys": str(count), "prefix": "live-"}
        for name in ("atomic", "run", "once", "replay_of"):
            speed = partial(server.speed, name, CAPACITY_CLIENTS, options.seconds, dsn=dsn, define=define)
            turns.append(Turn(name.removesuffix("_of"), {"keys": count}, speed))
        if count * 10 > options.keys:
            # nearly every key is the first on its pages since a checkpoint: the most that images can cost
            server.execute("checkpoint")
            clients = ["-c", str(CAPACITY_CLIENTS), "-j", "2", "-t", str(TRANSACTIONS // 4)]
            written = server.wal_bytes(partial(server.pgbench, "atomic", *clients, dsn=dsn))
            results.add(
                CAPACITY, AFTER_CHECKPOINT, "bytes", [written / (CAPACITY_CLIENTS * TRANSACTIONS // 4)], keys=count
            )
        count *= 10
    server.execute("checkpoint")
    for turn, values in interleaved(console, "keys stored", turns, options.rounds):
        results.add(KEYS, turn.name, "operations/s", values, **turn.by)


def bodies(server: Server, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Measure answers of different lengths, which do not compress."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        text = BODY_SETUP.replace("%(sizes)s", f"'{{{','.join(map(str, SIZES))}}}'").replace(
            "%(digests)s", str(SIZES[-1] // 32)
        )
        connection.execute(text.encode())
    turns = [
        Turn(
            name.removeprefix("body_"),
            {"bytes": size},
            partial(server.speed, name, CAPACITY_CLIENTS, options.seconds, define={"size": str(size)}),
        )
        for size in SIZES
        for name in ("body_store", "body_replay")
    ]
    for turn, values in interleaved(console, "bodies", turns, 1):
        results.add(BODIES, turn.name, "operations/s", values, **turn.by)


def contention(server: Server, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Measure many clients on few keys."""
    turns = [
        Turn(
            "replay",
            {"keys": count},
            partial(
                server.speed, "replay_of", HOT_CLIENTS, options.seconds,
                define={"keys": str(count), "prefix": "stored-"},
            ),
        )
        for count in HOT
    ]  # fmt: skip
    for turn, values in interleaved(console, "contention", turns, options.rounds):
        results.add(CONTENTION, turn.name, "operations/s", values, **turn.by)


def retention(server: Server, results: Results, console: Console) -> None:
    """Measure clients at full speed beside purge, under short retentions: three lives of the table or so."""
    dsn = server.install("retention")
    for ttl, seconds in RETENTIONS.items():
        console.print(f"retention of {ttl} seconds")
        server.execute(
            f"update idem.policies set ttl = '{ttl} seconds', lease = '1 second', min_retention = '1 second'"
            " where name = 'default'",
            dsn=dsn,
        )
        with _purging(dsn):
            speed = server.speed("atomic", CAPACITY_CLIENTS, seconds, dsn=dsn)
            [(size, live)] = server.execute(
                "select pg_total_relation_size('idem_private.reservation'),"
                " (select count(*) from idem_private.reservation)",
                dsn=dsn,
            )
        results.add(RETENTION, "operations/s", "operations/s", [speed], seconds=ttl)
        results.add(RETENTION, "MB", "MB", [size / 1e6], seconds=ttl)
        results.add(RETENTION, "keys", "keys", [live], seconds=ttl)
        server.execute("call idem.purge_all()", dsn=dsn)


def capacity(server: Server, results: Results) -> None:
    """Measure what one operation costs the processor, and the log but for full-page images."""
    _full_page_writes(server, "off")
    for name in ("work", "atomic", "run", "once", "replay"):
        transactions = ["-c", str(CAPACITY_CLIENTS), "-j", "2", "-t", str(TRANSACTIONS)]
        count = CAPACITY_CLIENTS * TRANSACTIONS
        # so that what the one before has left is not vacuumed meanwhile
        server.execute("vacuum analyze")
        server.execute("checkpoint")
        spent: list[float] = []

        def work(script: str = name, arguments: list[str] = transactions, spent: list[float] = spent) -> None:
            spent.append(server.processor_seconds(partial(server.pgbench, script, *arguments)))

        written = server.wal_bytes(work)
        results.add(CAPACITY, f"WAL bytes, {name}", "bytes", [written / count])
        results.add(CAPACITY, f"processor, {name}", "microseconds", [spent[0] * 1e6 / count])
    _full_page_writes(server, "on")


def targets(_: argparse.Namespace) -> list[Target]:
    """Return what is asked for."""
    return [
        *(
            Target(KEYS, name, name, 0.8, by={"keys": 10_000_000}, of_by={"keys": FEWEST})
            for name in ("atomic", "run", "once", "replay")
        ),
        Target(CONTENTION, "replay", "replay", 0.9, by={"keys": HOT[0]}, of_by={"keys": HOT[-1]}),
    ]


def report(options: argparse.Namespace, results: Results, console: Console) -> None:
    """Print the tables."""
    names = ["atomic", "run", "once", "replay", "store"]
    show(console, pivot(results, KEYS, names, "keys", "Operations/s by number of keys stored"))
    show(console, pivot(results, BODIES, names, "bytes", "Operations/s by length of the answer"))
    show(console, pivot(results, CONTENTION, names, "keys", f"{HOT_CLIENTS} clients: replays/s by number of keys"))
    title = "Beside purge: by retention in seconds"
    show(console, pivot(results, RETENTION, ["operations/s", "keys", "MB"], "seconds", title))
    rows = [[r.name, f"{r.median:,.0f}", r.unit] for r in results.select(CAPACITY)]
    show(console, ("What one key costs", ["", "", "unit"], rows))
    show(console, targets_table(results, targets(options), "Growth: achieved"))


def _full_page_writes(server: Server, value: str) -> None:
    server.execute(f"alter system set full_page_writes = {value}")
    server.execute("select pg_reload_conf()")


def _sizes(server: Server, dsn: str, count: int, results: Results) -> None:
    [sizes] = server.execute(
        "select pg_total_relation_size('idem_private.reservation'), pg_table_size('idem_private.reservation'),"
        " pg_relation_size('idem_private.reservation_pkey'), pg_relation_size('idem_private.reservation_expiry')",
        dsn=dsn,
    )
    for name, size in zip(("all", "table", "primary key", "index on expiry"), sizes, strict=True):
        results.add(CAPACITY, f"bytes stored, {name}", "bytes", [size / count], keys=count)


@contextmanager
def _purging(dsn: str) -> Iterator[None]:
    """Purge every second beside the block."""
    stopped = threading.Event()

    def purge() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not stopped.wait(1):
                connection.execute("call idem.purge_all()")

    thread = threading.Thread(target=purge)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()

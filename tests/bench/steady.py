"""Measure the steady state: keys come, expire and are purged, for several turnovers of the whole table.

Size: writers reserve and complete keys one by one while purge runs beside them. A turnover is as many new keys as there
are live ones. The clock goes by the count of keys, so that a retention of a day passes however fast the machine is.

Load: what clients achieve, and how long a reserve takes, without purge, beside a purge that keeps pace with them, and
beside one that works off a backlog as fast as it can.
"""

import argparse
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from rich.console import Console
from rich.table import Table

from pyidem.embedded import Cluster
from tests.bench.server import SCRIPTS, SETTINGS
from tests.support.database import ROOT, run_psql
from tests.support.server import find_server

WRITERS = 2
SETUP = """
create table orders (id bigint generated always as identity primary key, amount int not null, note text not null);
create sequence made;

-- A thousand keys, or as many as there are left. Statistics, which autovacuum goes by, are reported between calls.
create procedure make(keys bigint, live bigint, inout done boolean default false) language plpgsql as $$
declare
    number bigint;
    token uuid;
begin
    for i in 1..1000 loop
        number := nextval('made');
        done := number > keys;
        exit when done;
        perform set_config('idem.clock_offset', number * interval '24 hours' / live || '', false);
        select r.token into token
        from idem.reserve('client:' || number % 1000, 'key-' || number, sha256('request')) as r;
        perform idem.complete(
            'client:' || number % 1000, 'key-' || number, token, 201, '[["content-type", "application/json"]]',
            convert_to('{"id": ' || number || ', "text": "' || repeat('x', 200) || '"}', 'UTF8')
        );
        if i % 20 = 0 then
            commit;
        end if;
    end loop;
end
$$;

create procedure tidy(live bigint, max_rows int) language plpgsql as $$
begin
    perform set_config(
        'idem.clock_offset', (select last_value from made) * interval '24 hours' / live || '', false
    );
    call idem.purge_all(max_rows);
end
$$;
"""
BACKLOG = """
insert into idem_private.reservation (
    scope, key, fingerprint, policy, created_at, expires_at, owned_at, token, attempt, leased, completed_at, status,
    headers, body
)
select
    'old', gen_random_uuid()::text, sha256('request'), 'default', now() - interval '1 day', now() - interval '1 hour',
    now() - interval '1 day', gen_random_uuid(), 1, false, now() - interval '1 day', 201, '[]',
    convert_to(repeat('x', 250), 'UTF8')
from generate_series(1, %s)
"""
SIZES = """
select
    pg_total_relation_size('idem_private.reservation'), pg_relation_size('idem_private.reservation'),
    pg_relation_size('idem_private.reservation_pkey'), pg_relation_size('idem_private.reservation_expiry'),
    (select count(*) from idem_private.reservation),
    (select n_dead_tup from pg_stat_all_tables where relid = 'idem_private.reservation'::regclass),
    (select autovacuum_count from pg_stat_all_tables where relid = 'idem_private.reservation'::regclass)
"""


@contextmanager
def repeated(action: Callable[[], object], pause: float) -> Iterator[None]:
    """Do something again and again beside the block."""
    stopped = threading.Event()

    def loop() -> None:
        while not stopped.wait(pause):
            action()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def size(dsn: str, options: argparse.Namespace, console: Console) -> None:
    """Turn the table over, and print its size after each time."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("select idem.enable_testing()")
        purger = psycopg.connect(dsn, autocommit=True)
        table = Table(
            "turnover", "seconds", "MB", "of the first", "heap", "primary key", "expiry", "keys", "dead", "vacuums"
        )
        first = 0
        with repeated(lambda: purger.execute("call tidy(%s, %s)", [options.keys, options.batch]), options.pause):
            for turnover in range(options.turnovers + 1):
                began = time.monotonic()
                writers = [
                    threading.Thread(target=write, args=[dsn, (turnover + 1) * options.keys, options.keys])
                    for _ in range(WRITERS)
                ]
                for writer in writers:
                    writer.start()
                for writer in writers:
                    writer.join()
                total, heap, key, expiry, keys, dead, vacuums = admin.execute(SIZES.encode()).fetchall()[0]
                # the writer that found its number too high took it from the sequence
                admin.execute("select setval('made', %s)", [(turnover + 1) * options.keys])
                first = first or total
                table.add_row(
                    str(turnover), f"{time.monotonic() - began:.0f}", f"{total / 1e6:.0f}", f"{total / first:.2f}",
                    f"{heap / 1e6:.0f}", f"{key / 1e6:.0f}", f"{expiry / 1e6:.0f}", f"{keys:,}", f"{dead:,}",
                    str(vacuums),
                )  # fmt: skip
                console.print(
                    f"turnover {turnover}: {total / 1e6:.0f} MB, {total / first:.2f} of the first, {keys:,} keys"
                )
        purger.close()
        admin.execute("select idem.disable_testing()")
    console.print(table)


def write(dsn: str, keys: int, live: int) -> None:
    """Make keys until there have been so many."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("set synchronous_commit = off")
        while connection.execute("call make(%s, %s)", [keys, live]).fetchone() != (True,):
            pass


def load(cluster: Cluster, dsn: str, options: argparse.Namespace, console: Console) -> None:
    """Measure clients without purge, and beside it."""
    purger = psycopg.connect(dsn, autocommit=True)
    with psycopg.connect(dsn, autocommit=True) as admin:
        # what the clients make expires while they work
        admin.execute(
            "update idem.policies set ttl = '2 seconds', lease = '1 second', min_retention = '1 second'"
            " where name = 'default'"
        )

        def backlog() -> None:
            admin.execute(BACKLOG.encode(), [options.keys])
            admin.execute("vacuum analyze idem_private.reservation")
            admin.execute("checkpoint")

        def purge() -> None:
            purger.execute("call idem.purge_all(%s)", [options.batch])

        results: dict[str, list[tuple[float, float, float]]] = {"without": [], "keeping pace": [], "backlog": []}
        for _ in range(options.rounds):
            backlog()
            results["without"].append(measure(cluster, dsn, options))
            with repeated(purge, 0.01):
                results["backlog"].append(measure(cluster, dsn, options))
            purge()
            with repeated(purge, 1.0):
                results["keeping pace"].append(measure(cluster, dsn, options))
    purger.close()

    table = Table("purge", "transactions/s", "of that without", "reserve p50, ms", "p99, ms", "of that without")
    median = {name: [statistics.median(values) for values in zip(*runs, strict=True)] for name, runs in results.items()}
    for name, (tps, p50, p99) in median.items():
        table.add_row(
            name, f"{tps:,.0f}", f"{tps / median['without'][0]:.2f}", f"{p50:.2f}", f"{p99:.2f}",
            f"{p99 / median['without'][2]:.2f}",
        )  # fmt: skip
    console.print(table)


def measure(cluster: Cluster, dsn: str, options: argparse.Namespace) -> tuple[float, float, float]:
    """Let clients work for a while; return their transactions per second, and p50 and p99 of a reserve beside them."""
    command = [
        cluster.bindir / "pgbench", "--no-vacuum", "--protocol=prepared", "-f", SCRIPTS / "atomic.sql",
        "-c", str(options.clients), "-j", "2", "-T", str(options.seconds), dsn,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as pgbench:
        times = sorted(probe(dsn, lambda: pgbench.poll() is None))
        printed = pgbench.communicate()[0]
    found = re.search(r"^tps = ([\d.]+)", printed, re.MULTILINE)
    assert found is not None, printed
    return float(found[1]), times[len(times) // 2] * 1000, times[len(times) * 99 // 100] * 1000


def probe(dsn: str, goes_on: Callable[[], bool]) -> Iterator[float]:
    """Reserve and complete one key after the other, and yield how long each reserve took."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while goes_on():
            with connection.transaction():
                began = time.perf_counter()
                key, token = connection.execute(
                    "select k, r.token"
                    " from cast(gen_random_uuid() as text) as k, idem.reserve('probe', k, sha256('request')) as r"
                ).fetchall()[0]
                yield time.perf_counter() - began
                connection.execute("select idem.complete('probe', %s, %s, 201)", [key, token])
            time.sleep(0.002)


def main() -> None:
    """Measure what was asked for on a throwaway server."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.steady", description=__doc__)
    parser.add_argument("part", choices=["size", "load", "both"], nargs="?", default="both")
    parser.add_argument("--keys", type=int, default=1_000_000, help="live keys, and those of a turnover or a backlog")
    parser.add_argument("--turnovers", type=int, default=10)
    parser.add_argument("--batch", type=int, default=10_000, help="max_rows of purge")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two runs of purge")
    parser.add_argument("--seconds", type=int, default=20, help="length of one measurement of load")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of load; the median counts")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a storage parameter to try")
    options = parser.parse_args()
    installation = find_server()
    if installation is None:
        raise SystemExit("no PostgreSQL server found: run `make test` once, which installs one or says how")
    console = Console(width=140)
    with Cluster(installation.bindir, settings=SETTINGS | {"autovacuum_naptime": "1s"}) as cluster:
        dsn = cluster.dsn("postgres")
        run_psql(cluster, dsn, ROOT / "sql" / "install.sql")
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(SETUP.encode())
            for setting in options.set:
                admin.execute(f"alter table idem_private.reservation set ({setting})".encode())
        if options.part != "load":
            size(dsn, options, console)
        if options.part != "size":
            load(cluster, dsn, options, console)


if __name__ == "__main__":
    main()

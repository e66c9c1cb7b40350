"""Measure what looks at a whole installation, among ten million finished keys: health, stats and the search for lapsed;
and how long migrations hold their locks there.

The keys are written straight into the tables, on a throwaway server, with the times that years of use would have left:
several policies, tombstones, keys that purge has to take, and unfinished ones in every state.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from rich.console import Console
from rich.table import Table

from pyidem.embedded import Cluster
from tests.migrations.next_version import FIRST, Checkout, next_version
from tests.support.database import ROOT, run_psql
from tests.support.server import find_server

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "1GB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "16GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
}
POLICIES = """
insert into idem.policies (name, ttl, on_lapse, max_attempts, tombstone)
select
    'policy ' || n, make_interval(days => n), case when n % 2 = 0 then 'retry' else 'hold' end,
    case when n % 3 = 0 then 3 end, make_interval(days => n % 2)
from generate_series(1, 8) as n
"""
# One in a thousand is due for purge, one in a hundred a tombstone.
FINISHED = """
insert into idem_private.reservation (
    scope, key, fingerprint, policy, created_at, expires_at, expired_at, purge_at, owned_at, token, attempt, leased,
    completed_at, status, headers, body
)
select
    'client:' || n %% 10000, gen_random_uuid()::text, sha256(int8send(n)),
    case when n %% 10 = 0 then 'default' when n %% 10 = 9 then 'messages' else 'policy ' || n %% 10 end,
    at, case when tombstone then '-infinity' else at + life end, case when tombstone then at + life end,
    case when tombstone then now() + interval '10 days' end,
    at, case when not tombstone then gen_random_uuid() end, 1, n %% 3 = 0,
    at + interval '1 second', case when not tombstone then 201 end,
    case when not tombstone then '[["content-type", "application/json"]]'::jsonb end,
    case when not tombstone then convert_to('{"id": ' || n || ', "text": "' || repeat('x', 100) || '"}', 'UTF8') end
from generate_series(%s::bigint, %s::bigint) as n
cross join lateral (
    select
        n %% 100 = 1 as tombstone, now() - n %% 80000 * interval '1 second' as at,
        case when n %% 1000 = 2 then interval '1 second' else interval '10 days' end as life
) as made
"""
# Half of them alive, the others lapsed; of these some wait for an operator, and some are put off; and some released.
UNFINISHED = """
with made as (
    insert into idem_private.reservation (
        scope, key, fingerprint, policy, created_at, expires_at, owned_at, token, attempt, leased, lease, lease_until,
        state, released_at
    )
    select
        'client:' || n %% 10000, 'open-' || gen_random_uuid(), sha256(int8send(n)), 'policy ' || 1 + n %% 8,
        now() - interval '1 hour', now() + interval '1 day', now() - interval '1 hour', gen_random_uuid(), 1 + n %% 3,
        true, '1 minute', now() + case when n %% 2 = 0 then interval '1 hour' else n %% 3000 * interval '-1 second' end,
        '{"charge": "ch_1", "amount": 100}', case when n %% 10 = 9 then now() end
    from generate_series(1, %s) as n
    returning scope, key
)
insert into idem_private.unfinished (scope, key, claims, claim_after, reason)
select
    m.scope, m.key, case when number %% 16 = 0 then 10 else 0 end,
    case when number %% 16 = 1 then now() + interval '1 hour' end, 'TimeoutError'
from (select made.*, row_number() over () as number from made) as m
"""
CALLS = {
    "idem.health()": "select * from idem.health()",
    "idem.stats()": "select * from idem.stats()",
    "idem.claim_lapsed(10)": "select * from idem.claim_lapsed(10)",
    "idem.keys, lapsed ones": "select * from idem.keys where unfinished and outcome = 'lapsed' order by lapsed_at",
}


def fill(admin: psycopg.Connection, options: argparse.Namespace) -> None:
    """Write the keys. Indexes are made at the end, as a dump does it."""
    admin.execute(POLICIES)
    indexes = admin.execute(
        "select pg_get_constraintdef(c.oid), pg_get_indexdef('idem_private.reservation_expiry'::regclass)"
        " from pg_constraint as c where c.conrelid = 'idem_private.reservation'::regclass and c.contype = 'p'"
    ).fetchall()[0]
    admin.execute("alter table idem_private.reservation drop constraint reservation_pkey")
    admin.execute("drop index idem_private.reservation_expiry")
    step = 500_000
    for first in range(1, options.keys + 1, step):
        admin.execute(FINISHED.encode(), [first, min(first + step - 1, options.keys)])
    admin.execute(f"alter table idem_private.reservation add {indexes[0]}".encode())
    admin.execute(indexes[1].encode())
    admin.execute(UNFINISHED.encode(), [options.unfinished])
    admin.execute("vacuum (analyze, parallel 0) idem_private.reservation, idem_private.unfinished")


@contextmanager
def session(dsn: str) -> Iterator[tuple[psycopg.Connection, Callable[[], float]]]:
    """Open a session; with it comes a clock of the processor time that its backend has used, in milliseconds."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        usage = Path(f"/proc/{connection.info.backend_pid}/schedstat")
        yield connection, lambda: int(usage.read_text().split()[0]) / 1e6


def measure(dsn: str, statements: str, rounds: int) -> list[float]:
    """Return milliseconds: of processor time for the first call in a session and for others, and passed by for those.

    Each is the median of three sessions, and is rolled back.
    """
    firsts, used, passed = [], [], []
    for _ in range(3):
        with session(dsn) as (connection, processor):
            for number in range(rounds):
                began, before = time.perf_counter(), processor()
                connection.execute(statements.encode())
                (used if number else firsts).append(processor() - before)
                passed.append((time.perf_counter() - began) * 1000)
                connection.execute("rollback")
    return [statistics.median(firsts), statistics.median(used), statistics.median(passed)]


def migrations(directory: Path) -> dict[str, str]:
    """Return the downgrade to base, and the way to a next revision that adds a column and replaces functions."""
    later = next_version(directory)
    return {"downgrade to base": text(later, FIRST, "base"), "a next revision": text(later, FIRST, "head")}


def text(checkout: Checkout, from_: str, to: str) -> str:
    """Return the statements of a migration without their COMMIT."""
    return checkout.pyidem("sql", "--from", from_, "--to", to).stdout.rstrip().removesuffix("COMMIT;")


def main() -> None:
    """Fill a throwaway server, and print how long the calls take."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.large", description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="finished keys")
    parser.add_argument("--unfinished", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10, help="calls in each of three sessions")
    parser.add_argument("--hold", action="store_true", help="keep the server until Enter is pressed")
    options = parser.parse_args()
    installation = find_server()
    if installation is None:
        raise SystemExit("no PostgreSQL server found: run `make test` once, which installs one or says how")
    console = Console(width=120)
    with Cluster(installation.bindir, settings=SETTINGS) as cluster:
        dsn = cluster.dsn("postgres")
        run_psql(cluster, dsn, ROOT / "sql" / "install.sql")
        with psycopg.connect(dsn, autocommit=True) as admin:
            began = time.monotonic()
            fill(admin, options)
            total = admin.execute("select pg_total_relation_size('idem_private.reservation')").fetchall()[0][0]
            console.print(f"filled in {time.monotonic() - began:.0f} s, {total / 1e9:.1f} GB")
            version = admin.execute("show server_version").fetchall()[0][0]
        table = Table("ms", "processor, first of a session", "processor", "passed", title=f"PostgreSQL {version}")
        with tempfile.TemporaryDirectory() as directory:
            for name, statements in (CALLS | migrations(Path(directory))).items():
                shown = statements if name not in CALLS else f"begin; {statements}"
                table.add_row(name, *(f"{each:.0f}" for each in measure(dsn, shown, options.rounds)))
        console.print(table)
        if options.hold:
            console.input(f"{dsn}\nEnter ends the server. ")


if __name__ == "__main__":
    main()

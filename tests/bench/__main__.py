"""Measure what the calls cost, as ratios to what one would write by hand, all in one run on a throwaway server."""

import argparse
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pyidem.embedded import Cluster
from tests.support.database import ROOT, run_psql
from tests.support.server import find_server

SCRIPTS = Path(__file__).parent / "scripts"
SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "4GB", "checkpoint_timeout": "1h", "max_connections": "100"}
WAL_TRANSACTIONS = 2000


@dataclass(frozen=True)
class Ratio:
    """What one script achieves of another, and what is expected of it."""

    name: str
    of: str
    least: float | None = None
    aim: float | None = None


SPEED = [
    Ratio("atomic", "hand", 0.7, 0.8),
    Ratio("leased", "hand"),
    Ratio("run", "hand", 1.4, 1.6),
    Ratio("replay", "select", 0.6, 0.75),
    Ratio("mismatch", "select"),
    Ratio("in_progress", "select"),
    Ratio("once", "insert", 0.8, 0.9),
    Ratio("hand", "work"),
]
WAL = [Ratio("atomic", "hand", 1.1), Ratio("run", "hand", 0.7), Ratio("leased", "hand"), Ratio("once", "insert")]


class Bench:
    """A server, and pgbench against it."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace) -> None:
        self.cluster = cluster
        self.options = options
        self.dsn = cluster.dsn("postgres")

    def pgbench(self, script: str, *arguments: str) -> str:
        """Run one script and return what pgbench printed."""
        command = [
            self.cluster.bindir / "pgbench",
            "--no-vacuum",
            "--protocol=prepared",
            "-f",
            SCRIPTS / f"{script}.sql",
        ]
        done = subprocess.run([*command, *arguments, self.dsn], check=False, capture_output=True, text=True)
        if done.returncode or "aborted" in done.stderr:
            raise SystemExit(f"pgbench -f {script}.sql failed:\n{done.stderr}")
        return done.stdout

    def speed(self, script: str) -> float:
        """Transactions per second of some clients."""
        clients = str(self.options.clients)
        printed = self.pgbench(script, "-c", clients, "-j", "2", "-T", str(self.options.seconds))
        found = re.search(r"^tps = ([\d.]+)", printed, re.MULTILINE)
        assert found is not None, printed
        return float(found[1])

    def wal(self, script: str) -> float:
        """Bytes of WAL per transaction of one client, without full-page images."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            before = connection.execute("select pg_current_wal_insert_lsn()").fetchone()
            self.pgbench(script, "-c", "1", "-t", str(WAL_TRANSACTIONS))
            after = connection.execute("select pg_current_wal_insert_lsn() - %s::pg_lsn", before).fetchone()
        assert after is not None
        return float(after[0]) / WAL_TRANSACTIONS

    def hot_share(self) -> float:
        """Share of HOT updates among those of the reservations, since statistics began."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            row = connection.execute(
                "select n_tup_hot_upd::float / n_tup_upd from pg_stat_all_tables"
                " where relid = 'idem_private.reservation'::regclass"
            ).fetchone()
        assert row is not None
        return float(row[0])


def main() -> None:
    """Run all scripts in turns, and print the ratios."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument("--seconds", type=int, default=4, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each script; the median counts")
    parser.add_argument("--clients", type=int, default=4, help="concurrent clients")
    parser.add_argument("--fsync", choices=["on", "off"], default="on", help="off shows the processor's part alone")
    options = parser.parse_args()
    console = Console()
    installation = find_server()
    if installation is None:
        raise SystemExit("no PostgreSQL server found: run `make test` once, which installs one or says how")

    with Cluster(
        installation.bindir, settings=SETTINGS | {"fsync": options.fsync, "full_page_writes": "off"}
    ) as cluster:
        bench = Bench(cluster, options)
        run_psql(cluster, bench.dsn, ROOT / "sql" / "install.sql")
        run_psql(cluster, bench.dsn, Path(__file__).parent / "setup.sql")
        scripts = sorted({name for ratio in SPEED for name in (ratio.name, ratio.of)})
        speeds: dict[str, list[float]] = {script: [] for script in scripts}
        # in turns, so that a busy moment of the machine hits all alike
        turns = [script for _ in range(options.rounds) for script in scripts]
        for script in track(turns, "measuring", console=console, disable=not console.is_terminal):
            speeds[script].append(bench.speed(script))
        medians = {script: statistics.median(values) for script, values in speeds.items()}
        wal = {script: bench.wal(script) for script in {name for ratio in WAL for name in (ratio.name, ratio.of)}}
        hot = bench.hot_share()

    table = Table(title=f"{options.clients} clients, fsync {options.fsync}, median of {options.rounds} turns")
    for column in ("", "transactions/s", "against", "ratio", "at least", "aim"):
        table.add_column(column, justify="left" if column in ("", "against") else "right")
    for ratio in SPEED:
        table.add_row(
            ratio.name, f"{medians[ratio.name]:,.0f}", ratio.of, f"{medians[ratio.name] / medians[ratio.of]:.2f}",
            f"{ratio.least or ''}", f"{ratio.aim or ''}",
        )  # fmt: skip
    console.print(table)
    table = Table(title=f"WAL, {WAL_TRANSACTIONS} transactions of one client, without full-page images")
    for column in ("", "bytes", "against", "ratio", "at most"):
        table.add_column(column, justify="left" if column in ("", "against") else "right")
    for ratio in WAL:
        bytes_ = wal[ratio.name]
        table.add_row(
            ratio.name, f"{bytes_:,.0f}", ratio.of, f"{bytes_ / wal[ratio.of]:.2f}", f"{ratio.least or ''}"
        )  # fmt: skip
    console.print(table)
    console.print(f"HOT share of the updates of reservations: {hot:.3f} (at least 0.95)")


if __name__ == "__main__":
    main()

"""SQL alone, by pgbench: what the calls achieve of what one would write by hand, of the limit, and of each other."""

import argparse
from functools import partial

from rich.console import Console

from tests.bench.results import Results, Target, Turn, interleaved, pivot, show, targets_table
from tests.bench.server import Server

PART = "floors"
WAL = "wal"
WAL_TRANSACTIONS = 2000
SPEED = [
    Target(PART, "atomic", "hand", 0.7, 0.8),
    Target(PART, "leased", "hand"),
    Target(PART, "run", "hand", 1.4, 1.6),
    Target(PART, "replay", "select", 0.6, 0.75),
    Target(PART, "mismatch", "select"),
    Target(PART, "in_progress", "select"),
    Target(PART, "once", "insert", 0.8, 0.9),
    Target(PART, "once_many", "once", 5),
    Target(PART, "http_reserve", "atomic"),
    Target(PART, "hand", "work"),
]
LOG = [
    Target(WAL, "atomic", "hand", 1.1, ceiling=True),
    Target(WAL, "run", "hand", 0.7, ceiling=True),
    Target(WAL, "leased", "hand"),
    Target(WAL, "once", "insert"),
]
TARGET_CLIENTS = 4
BATCH = {"once_many": 100}
SCRIPTS = list(dict.fromkeys(name for target in SPEED for name in (target.of, target.name)))


def measure(server: Server, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Run all scripts in turns, and keep what they reached."""
    # while nothing is there to vacuum
    for name in dict.fromkeys(name for target in LOG for name in (target.name, target.of)):
        written = server.wal_bytes(partial(server.pgbench, name, "-c", "1", "-t", str(WAL_TRANSACTIONS)))
        results.add(WAL, name, "bytes", [written / WAL_TRANSACTIONS])
    asked = asked_at(options.clients)
    turns = [
        Turn(name, {"clients": clients}, partial(_speed, server, name, clients, options.seconds), clients != asked)
        for clients in options.clients
        for name in SCRIPTS
    ]
    for turn, values in interleaved(console, "SQL alone", turns, options.rounds):
        results.add(PART, turn.name, "operations/s", values, **turn.by)
    [(hot,)] = server.execute(
        "select n_tup_hot_upd::float / n_tup_upd from pg_stat_all_tables"
        " where relid = 'idem_private.reservation'::regclass"
    )
    results.add(PART, "HOT share", "of updates", [hot])


def asked_at(clients: list[int]) -> int:
    """Return the number of clients at which something is asked for: 4, if that is measured."""
    return TARGET_CLIENTS if TARGET_CLIENTS in clients else clients[0]


def targets(clients: list[int]) -> list[Target]:
    """Return what is asked for."""
    at: dict[str, float] = {"clients": asked_at(clients)}
    return [Target(t.part, t.name, t.of, t.least, t.aim, at) for t in SPEED]


def report(options: argparse.Namespace, results: Results, console: Console) -> None:
    """Print the tables."""
    show(console, pivot(results, PART, SCRIPTS, "clients", "SQL alone: operations/s by number of clients"))
    show(console, targets_table(results, targets(options.clients), "SQL alone: achieved of what is written by hand"))
    show(console, targets_table(results, LOG, "WAL bytes of one operation, without full-page images"))
    for record in results.select(PART, "HOT share"):
        console.print(f"HOT share of the updates of reservations: {record.median:.3f} (at least 0.95)")


def _speed(server: Server, name: str, clients: int, seconds: float) -> float:
    return server.speed(name, clients, seconds) * BATCH.get(name, 1)

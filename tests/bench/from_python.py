"""From Python, sync and async, on psycopg: pyidem, the same by hand, and both with a network delay."""

import argparse
from contextlib import ExitStack
from functools import partial

from psycopg.conninfo import make_conninfo
from rich.console import Console

from tests.bench.floors import asked_at
from tests.bench.proxy import DELAY, delaying
from tests.bench.results import Results, Target, Turn, interleaved, pivot, show, targets_table
from tests.bench.server import Server
from tests.bench.workers import Workers, python_workers

FLAVOURS = {"sync": "sync", "async": "asynchronous"}
NAMES = [
    "work", "hand", "atomic", "leased", "run", "http_reserve", "select", "replay", "mismatch", "in_progress", "insert",
    "once", "once_many",
]  # fmt: skip
# at other numbers of clients than that at which something is asked for
ELSEWHERE = ["work", "hand", "atomic", "leased", "run", "replay", "once"]
DELAYED = ["work", "hand", "atomic", "leased", "run", "select", "replay", "insert", "once"]
DELAYED_CLIENTS = [1, 4]
BATCH = {"once_many": 100}


def part(flavour: str, *, delayed: bool) -> str:
    """Return the name of the part that a flavour's records belong to."""
    return f"python {flavour}{', delayed' if delayed else ''}"


def measure(server: Server, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Run all candidates in turns."""
    with ExitStack() as stack:
        workers = stack.enter_context(python_workers(server.dsn))
        port = stack.enter_context(delaying(server.cluster.host, server.cluster.port))
        far = stack.enter_context(python_workers(make_conninfo(server.dsn, port=port)))
        turns = _turns(workers, NAMES, options.clients, options.seconds, delayed=False)
        nearby = [clients for clients in options.clients if clients in DELAYED_CLIENTS] or options.clients[:1]
        turns += _turns(far, DELAYED, nearby, options.seconds, delayed=True)
        for turn, values in interleaved(console, "from Python", turns, options.rounds):
            name, _, of = turn.name.partition("|")
            results.add(of, name, "operations/s", values, **turn.by)


def targets(options: argparse.Namespace) -> list[Target]:
    """Return what is asked for."""
    at: dict[str, float] = {"clients": asked_at(options.clients)}
    found = []
    for flavour in FLAVOURS:
        near, far = part(flavour, delayed=False), part(flavour, delayed=True)
        found += [
            Target(near, "atomic", "hand", 0.9, by=at),
            Target(far, "atomic", "hand", 1.2, by=at),
            Target(near, "leased", "hand", by=at),
            Target(near, "run", "hand", by=at),
            Target(near, "replay", "select", by=at),
            Target(far, "replay", "select", by=at),
            Target(near, "once", "insert", by=at),
            Target(near, "once_many", "once", 5, by=at),
        ]
    return found


def report(options: argparse.Namespace, results: Results, console: Console) -> None:
    """Print the tables."""
    for delayed in (False, True):
        for flavour in FLAVOURS:
            of = part(flavour, delayed=delayed)
            network = f", {DELAY * 1000:g} ms each way" if delayed else ""
            title = f"Python, {flavour}{network}: operations/s by number of clients"
            show(console, pivot(results, of, NAMES, "clients", title))
    for flavour in FLAVOURS:
        mine = [target for target in targets(options) if flavour in target.part.split(",")[0].split()]
        show(console, targets_table(results, mine, f"Python, {flavour}: achieved"))


def _turns(workers: Workers, names: list[str], counts: list[int], seconds: float, *, delayed: bool) -> list[Turn]:
    return [
        Turn(
            f"{name}|{part(flavour, delayed=delayed)}",
            {"clients": clients},
            partial(_speed, workers, f"{module}:{name}", name, clients, seconds),
            clients != asked_at(counts),
        )
        for clients in counts
        for name in names
        if clients == asked_at(counts) or name in ELSEWHERE
        for flavour, module in FLAVOURS.items()
    ]


def _speed(workers: Workers, candidate: str, name: str, clients: int, seconds: float) -> float:
    return workers.speed(candidate, clients, seconds)["speed"] * BATCH.get(name, 1)

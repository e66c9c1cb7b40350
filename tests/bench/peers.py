"""Other packages that keep idempotency keys in Postgres, beside pyidem, with and without a network delay.

They are installed from the extra `bench-peers` into an environment of their own, one by one, so that none gets into the
way of the tests; what cannot be installed or does not run is named, with the reason.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psycopg.conninfo import make_conninfo
from rich.console import Console

from tests.bench.floors import asked_at
from tests.bench.proxy import DELAY, delaying
from tests.bench.results import Results, Target, Turn, interleaved, pivot, show, targets_table
from tests.bench.server import HERE, Server
from tests.bench.workers import WorkerFailed, Workers, python_workers, workers
from tests.support.database import ROOT

PART = "peers"
DELAYED = "peers, delayed"
BEST = "best peer"
ENVIRONMENT = ROOT / ".venv" / "peers"
NODE = HERE / "node"


@dataclass(frozen=True)
class Peer:
    """A package and what is measured of it; `node` is that of npm."""

    name: str
    package: str
    candidate: str
    replay: bool = False
    node: bool = False


OURS = [
    Peer("pyidem atomic, sync", "pyidem", "sync:atomic"),
    Peer("pyidem atomic, async", "pyidem", "asynchronous:atomic"),
    Peer("pyidem leased, async", "pyidem", "asynchronous:leased"),
    Peer("pyidem replay, sync", "pyidem", "sync:replay", replay=True),
    Peer("pyidem replay, async", "pyidem", "asynchronous:replay", replay=True),
]
PEERS = [
    Peer("idemkit", "idemkit", "peers:idemkit"),
    Peer("justonce", "justonce", "peers:justonce"),
    Peer("DBOS", "dbos", "peers:dbos"),
    Peer("fastidempotent", "fastidempotent", "peers:fastidempotent"),
    Peer("DBOS on npm", "@dbos-inc/dbos-sdk", "dbos", node=True),
    Peer("idemkit replay", "idemkit", "peers:idemkit_replay", replay=True),
    Peer("justonce replay", "justonce", "peers:justonce_replay", replay=True),
    Peer("DBOS replay", "dbos", "peers:dbos_replay", replay=True),
]
NAMES = [peer.name for peer in [*OURS, *PEERS]]


def measure(server: Server, options: argparse.Namespace, results: Results, console: Console) -> None:
    """Run all of them in turns."""
    missing = install(console)
    clients = [count for count in options.clients if count in (4, 16)] or options.clients[:1]
    delayed = asked_at(options.clients)
    with ExitStack() as stack:
        port = stack.enter_context(delaying(server.cluster.host, server.cluster.port))
        turns: list[Turn] = []
        started: dict[tuple[str, str], Workers] = {}
        for peer in [*OURS, *PEERS]:
            if peer.package in missing:
                continue
            # one pair of processes for a package, since some of them work in the background
            for dsn in (server.dsn, make_conninfo(server.dsn, port=port)):
                if (peer.package, dsn) not in started:
                    started[peer.package, dsn] = _workers(peer, dsn, stack)
            near, far = (at for (package, _), at in started.items() if package == peer.package)
            try:
                # one client makes the tables
                near.speed(peer.candidate, 1, 0.1)
                near.speed(peer.candidate, 2, 0.1)
                far.speed(peer.candidate, 2, 0.1)
            except WorkerFailed as failed:
                missing[peer.package] = f"it does not run here: {failed}"
                continue
            counts = [(near, PART, count) for count in clients] + [(far, DELAYED, delayed)]
            turns += [
                Turn(
                    f"{peer.name}|{part}",
                    {"clients": count},
                    partial(_speed, at, peer, count, options.seconds),
                    count != delayed,
                )
                for at, part, count in counts
            ]
        for turn, values in interleaved(console, "peers", turns, options.rounds):
            name, _, part = turn.name.partition("|")
            results.add(part, name, "operations/s", values, **turn.by)
    for package, reason in missing.items():
        results.notes.append(f"{package} is not measured: {reason}")
    firsts = [peer.name for peer in PEERS if not peer.replay]
    for part in (PART, DELAYED):
        for count in {record.by["clients"] for record in results.select(part)}:
            reached = [r.median for r in results.select(part, clients=count) if r.name in firsts]
            if reached:
                results.add(part, BEST, "operations/s", [max(reached)], clients=count)


def install(console: Console) -> dict[str, str]:
    """Install each peer; return why one is missing."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["bench-peers"]
    stamp = ENVIRONMENT / "installed"
    missing: dict[str, str] = {}
    if not stamp.exists() or stamp.read_text() != repr(wanted):
        console.print(f"installing the peers into {ENVIRONMENT.relative_to(ROOT)} (the first time takes a minute)")
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        for requirement in [f"{ROOT}[pool,binary]", *wanted]:
            command = [ENVIRONMENT / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                missing[requirement.partition("[")[0].partition(">")[0]] = lines[-1] if lines else "pip failed"
        if not missing:
            stamp.write_text(repr(wanted))
    if shutil.which("npm") is None:
        missing["@dbos-inc/dbos-sdk"] = "there is no npm"
    elif not (NODE / "node_modules").exists():
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(NODE)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            missing["@dbos-inc/dbos-sdk"] = (done.stderr.strip().splitlines() or ["npm failed"])[-1]
    return missing


def targets(options: argparse.Namespace) -> list[Target]:
    """Return what is asked for."""
    at: dict[str, float] = {"clients": asked_at(options.clients)}
    return [
        Target(part, f"pyidem atomic, {flavour}", BEST, 2, by=at)
        for part in (PART, DELAYED)
        for flavour in ("sync", "async")
    ]


def report(options: argparse.Namespace, results: Results, console: Console) -> None:
    """Print the tables."""
    show(console, pivot(results, PART, NAMES, "clients", "Peers: operations/s by number of clients"))
    title = f"Peers, {DELAY * 1000:g} ms each way: operations/s by number of clients"
    show(console, pivot(results, DELAYED, NAMES, "clients", title))
    show(console, targets_table(results, targets(options), "Peers: achieved"))
    for note in results.notes:
        console.print(note)


def _workers(peer: Peer, dsn: str, stack: ExitStack) -> Workers:
    if peer.node:
        return stack.enter_context(workers(["node", NODE / "worker.mjs"], dsn))
    python = None if peer.package == "pyidem" else Path(ENVIRONMENT / "bin" / "python")
    return stack.enter_context(python_workers(dsn, python))


def _speed(at: Workers, peer: Peer, clients: int, seconds: float) -> float:
    return at.speed(peer.candidate, clients, seconds)["speed"]

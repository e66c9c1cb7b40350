"""One run of the demonstration, from an empty directory to the verdict."""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

import psycopg
from psycopg import sql

from pyidem import migrate
from pyidem.demo import schema
from pyidem.demo.clients import Clients
from pyidem.demo.network import Hazards, Network, Record
from pyidem.demo.operations import plan
from pyidem.demo.processes import Assassin, Child
from pyidem.demo.verdict import Effects, Violation, judge, measure
from pyidem.embedded import Cluster, embedded_bindir

_SHOP: Final = "shop"
_PROVIDER: Final = "provider"
# The data is thrown away, and no kill -9 takes the operating system's cache along.
_SETTINGS: Final = {"fsync": "off", "full_page_writes": "off", "max_connections": "500", "log_min_messages": "fatal"}

Report: TypeAlias = Callable[[str], None]
Progress: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose. `kill_every` is in seconds, on average; zero kills no worker at random."""

    operations: int = 1000
    workers: int = 4
    clients: int = 12
    kill_every: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `seconds` is the time that the clients were at work."""

    options: Options
    record: Record
    effects: Effects
    workers_killed: int
    seconds: float
    violations: list[Violation]


def new_seed() -> int:
    """Return a seed for a run that is to be unlike others."""
    return secrets.randbelow(1_000_000)


def run(options: Options, report: Report, progress: Progress) -> Outcome:
    """Run the demonstration. `report` is told what begins, `progress` how many operations are answered.

    Nothing is left behind, however it ends.
    """
    rng = Random(options.seed)  # noqa: S311 - chance, not secrets
    operations = plan(options.operations, rng)
    report("Starting a PostgreSQL server")
    with Cluster(embedded_bindir(), settings=_SETTINGS) as cluster:
        report("Installing pyidem and the tables of the shop and its payment provider")
        _create_databases(cluster)
        with _service(cluster, options.workers) as (children, workers):
            report(f"{len(operations)} refunds by {options.clients} clients, {options.workers} workers")
            ports = [worker.port for worker in workers]
            with Network.to(ports, Hazards(), clients=options.clients) as network:
                clients = Clients(network, options.clients, options.seed)
                began = time.monotonic()
                with Assassin(workers, options.kill_every, rng):
                    for answered in clients.perform(operations):
                        for child in children:
                            child.check()
                        progress(answered)
                seconds = time.monotonic() - began
        report("Asking the databases what came of it")
        record = network.record
        with psycopg.connect(cluster.dsn(_SHOP)) as shop, psycopg.connect(cluster.dsn(_PROVIDER)) as provider:
            violations = judge(
                shop,
                provider,
                operations,
                answers=record.answers,
                reuse=record.reuse,
                unanswered=clients.unanswered,
            )
            effects = measure(shop, provider)
    return Outcome(options, record, effects, sum(worker.deaths for worker in workers), seconds, violations)


@contextmanager
def _service(cluster: Cluster, count: int) -> Iterator[tuple[list[Child], list[Child]]]:
    """Start the provider and the workers; yield all of them, and the workers."""
    with ExitStack() as cleanup:
        log = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="pyidem-demo-"))) / "log"
        children: list[Child] = []

        def start(module: str, **settings: object) -> Child:
            child = Child(f"pyidem.demo.{module}", log, **settings)
            cleanup.callback(child.stop)
            children.append(child)
            return child

        provider = start("provider", dsn=cluster.dsn(_PROVIDER))
        dsn = cluster.dsn(_SHOP, user=schema.SERVICE_ROLE)
        workers = [start("worker", dsn=dsn, provider_port=provider.port) for _ in range(count)]
        yield children, workers


def _create_databases(cluster: Cluster) -> None:
    role = sql.Identifier(schema.SERVICE_ROLE)
    with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} login password {}").format(role, cluster.password))
        for name in (_SHOP, _PROVIDER):
            admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    migrate.upgrade(cluster.dsn(_SHOP))
    with psycopg.connect(cluster.dsn(_SHOP)) as shop:
        shop.execute(schema.SHOP)
        shop.execute(sql.SQL("grant insert, select on refund to {}").format(role))
        shop.execute("select idem.grant_client(%s)", [schema.SERVICE_ROLE])
    with psycopg.connect(cluster.dsn(_PROVIDER)) as provider:
        provider.execute(schema.PROVIDER)

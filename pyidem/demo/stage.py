"""What the demonstration plays on: a throwaway server, the provider, and the workers of the refunds API."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import sql

from pyidem import migrate
from pyidem.demo import provider, schema, worker
from pyidem.demo.processes import Child
from pyidem.demo.proxy import Hazards, Observe, Proxy
from pyidem.demo.wire import Request, exchange
from pyidem.embedded import Cluster, embedded_bindir

_SHOP: Final = "shop"
_PROVIDER: Final = "provider"
_CHECK_SECONDS = 0.2
# The data is thrown away, and no kill -9 takes the operating system's cache along.
_SETTINGS: Final = {"fsync": "off", "full_page_writes": "off", "max_connections": "500", "log_min_messages": "fatal"}

Report: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that runs.

    Attributes:
        shop: connection string of the shop's database, for its owner.
        service: the same for the service.
        provider: that of the provider's database.
        port: where the API is reached.
        provider_port: where the provider is reached, without a proxy between.
        workers: the processes behind it.
        children: these and the provider.
    """

    shop: str
    service: str
    provider: str
    port: int
    provider_port: int
    workers: list[Child]
    children: list[Child]
    _log: Path

    def log(self) -> str:
        """Return the end of what the children had to say."""
        return self._log.read_text()[-4000:]

    async def watch(self, work: asyncio.Future[None], look: Callable[[], None] = lambda: None) -> None:
        """Wait until some work is done, and look after the children, and at whatever else, meanwhile."""
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=_CHECK_SECONDS)
                for child in self.children:
                    child.check()
                look()
        finally:
            work.cancel()
        await work


class StageError(RuntimeError):
    """It cannot be put up."""


def _ignore(*_: object) -> None:
    """Take no notice of what the provider is asked: it keeps its own books."""


@asynccontextmanager
async def stage(
    workers: int,
    report: Report,
    *,
    to_service: Hazards = Hazards(),  # noqa: B008 - it is frozen
    to_provider: Hazards = Hazards(),  # noqa: B008
    lease: str = "5 seconds",
    patience: float = 10,
    seed: int = 0,
    observe: Observe = _ignore,
    port: int = 0,
) -> AsyncIterator[Stage]:
    """Build it up, with a proxy on either side of the workers. Nothing is left behind, however it ends.

    `lease` is how long work at the provider is presumed alive, `patience` how many seconds it waits for an answer.
    """
    if port and _is_taken(port):
        raise StageError(f"port {port} is in use: name another one with --port")
    async with AsyncExitStack() as cleanup:
        report("Starting a PostgreSQL server")
        cluster = cleanup.enter_context(Cluster(embedded_bindir(), settings=_SETTINGS))
        report("Installing pyidem and the tables of the shop and its payment provider")
        _create_databases(cluster, lease)
        log = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="pyidem-demo-"))) / "log"
        children: list[Child] = []

        def start(make_app: Callable[..., Any], **settings: object) -> Child:
            child = Child(make_app, log, **settings)
            cleanup.callback(child.stop)
            children.append(child)
            return child

        async def open_proxy(ports: list[int], hazards: Hazards, side: str, observe: Observe, port: int = 0) -> int:
            proxy = Proxy(ports, hazards, f"{seed}/{side}", observe, port=port)
            return (await cleanup.enter_async_context(proxy)).port

        bank = start(provider.make_app, dsn=cluster.dsn(_PROVIDER))
        service = cluster.dsn(_SHOP, user=schema.SERVICE_ROLE)
        provider_port = await open_proxy([bank.port], to_provider, "provider", _ignore)
        settings = {"dsn": service, "provider_port": provider_port, "patience": patience}
        staff = [start(worker.make_app, **settings) for _ in range(workers)]
        public = await open_proxy([one.port for one in staff], to_service, "service", observe, port)
        await asyncio.gather(*(_wait_until_it_answers(child) for child in children))
        yield Stage(cluster.dsn(_SHOP), service, cluster.dsn(_PROVIDER), public, bank.port, staff, children, log)


async def _wait_until_it_answers(child: Child) -> None:
    """Ask it for anything: the connection waits until it is there."""
    answer = asyncio.ensure_future(exchange(child.port, Request("GET", "/", (("Host", "demo"),), b"")))
    try:
        while not answer.done():
            await asyncio.wait({answer}, timeout=_CHECK_SECONDS)
            child.check()
    finally:
        answer.cancel()


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _create_databases(cluster: Cluster, lease: str) -> None:
    role = sql.Identifier(schema.SERVICE_ROLE)
    with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} login password {}").format(role, cluster.password))
        for name in (_SHOP, _PROVIDER):
            admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    migrate.upgrade(cluster.dsn(_SHOP))
    with psycopg.connect(cluster.dsn(_SHOP)) as shop:
        shop.execute(schema.SHOP)
        shop.execute(
            "update idem.policies set lease = %s::interval where name in ('card_refund', 'bank_transfer')", [lease]
        )
        shop.execute(sql.SQL("grant insert, select on refund, quote to {}").format(role))
        shop.execute("select idem.grant_client(%(role)s), idem.grant_resolver(%(role)s)", {"role": schema.SERVICE_ROLE})
    with psycopg.connect(cluster.dsn(_PROVIDER)) as provider:
        provider.execute(schema.PROVIDER)

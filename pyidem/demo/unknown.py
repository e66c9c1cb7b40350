"""The second part: workers are killed while the bank is at work, and a sweeper finds out what has become of it.

Nobody knows then whether the bank has paid, so nothing is tried again: clients are told so, and keep asking. The
sweeper goes on with the function of the first attempt, and everybody gets an answer.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from pyidem import AsyncIdem, AsyncSweeper, Swept
from pyidem.aio import AsyncLeasedOp
from pyidem.demo.clients import Clients
from pyidem.demo.operations import Operation
from pyidem.demo.provider import ProviderClient
from pyidem.demo.service import AtProvider, Books, Database, PaymentProvider
from pyidem.demo.stage import Report, Stage

Resolver: TypeAlias = Callable[[AsyncLeasedOp[Database]], Awaitable[None]]
MakeResolver: TypeAlias = Callable[[PaymentProvider, Books], Resolver]

POLICY: Final = "bank_transfer"
_EVERY = timedelta(seconds=0.2)
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 10

_PAID = "select count(*) >= %s from transfer where order_no = any(%s)"
# In one look: a worker that was started meanwhile may be late with a heartbeat, and its key then lapses for a moment.
_SETTLED_OR_LAPSED = """
    select count(*) = %s and bool_and(outcome <> 'in_progress'), count(*) filter (where outcome = 'lapsed')
    from idem.keys
    where policy = %s
"""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What came of it: how many outcomes were unknown, and what the sweeper has done about them."""

    outcomes: int
    swept: Swept


async def play(
    site: Stage,
    clients: Clients,
    operations: Sequence[Operation],
    report: Report,
    *,
    look: Callable[[], None],
    make_resolver: MakeResolver = AtProvider,
) -> Unknown:
    """Have the operations asked for, kill every worker, list what is unknown, and let the sweeper settle it."""
    report(f"{len(operations)} more refunds by bank transfer; all workers are killed while the bank is at work")
    asking = asyncio.ensure_future(clients.perform(operations, len(operations)))
    try:
        orders = [operation.order for operation in operations]
        await _until(site, site.provider, _PAID, [len(orders) // 2, orders])
        for worker in site.workers:
            worker.kill()
        _, outcomes = await _until(site, site.shop, _SETTLED_OR_LAPSED, [len(orders), POLICY])
        report(f"$ pyidem list\n{await _listed(site)}")
        report("A sweeper asks the bank")
        return Unknown(outcomes, await _sweep(site, asking, look, make_resolver))
    finally:
        asking.cancel()


async def _sweep(
    site: Stage, asking: asyncio.Future[None], look: Callable[[], None], make_resolver: MakeResolver
) -> Swept:
    """Sweep until every client has its answer."""
    async with (
        AsyncConnectionPool(site.service, min_size=1, max_size=8, open=False) as pool,
        ProviderClient(site.provider_port, _PATIENCE_SECONDS) as provider,
    ):
        resolver = make_resolver(provider, Books())
        sweeper = AsyncSweeper(AsyncIdem(pool), resolver, policy=POLICY, concurrency=4, http=True)
        sweeping = asyncio.ensure_future(sweeper.run(_EVERY, signals=False))

        def look_after_both() -> None:
            look()
            if sweeping.done():
                sweeping.result()

        try:
            await site.watch(asking, look_after_both)
        finally:
            sweeper.stop()
        return await sweeping


async def _listed(site: Stage) -> str:
    """Return what the command prints. The connection string goes where only its user can read it."""
    environment = {**os.environ, "PYIDEM_DSN": site.shop, "COLUMNS": "120"}
    command = (sys.executable, "-m", "pyidem", "list")
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    return printed.decode()


async def _until(site: Stage, dsn: str, query: str, arguments: list[Any]) -> tuple[Any, ...]:
    """Wait for the first that one of the databases says to become true, and return all of it."""
    while not (row := await _row(dsn, query, arguments))[0]:
        for child in site.children:
            child.check()
        await asyncio.sleep(_POLL_SECONDS)
    return row


async def _row(dsn: str, query: str, arguments: list[Any]) -> tuple[Any, ...]:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        row: tuple[Any, ...] | None = await (await connection.execute(query, arguments)).fetchone()
    assert row is not None
    return row

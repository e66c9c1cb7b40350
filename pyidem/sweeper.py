"""`Sweeper` and `AsyncSweeper`: settle the keys whose owners have died or given up.

    def at_provider(op):
        made = provider.refund(**op.state, idempotency_key=str(op.downstream_key()))
        with op.transaction() as connection:
            insert_refund(connection, made)
            op.complete(201, {"id": made.id})

    Sweeper(idem, at_provider, policy="provider").run()

The function is the one that first attempts call within `idem.leased`.
"""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from pyidem._drivers import Flow, run, run_around, run_around_async, run_async
from pyidem._errors import ResolverTimeout
from pyidem._messages import require_flavour
from pyidem._signals import stopping
from pyidem._sweeping import Sweeping, Swept
from pyidem.aio import AsyncIdem, AsyncLeasedOp
from pyidem.client import Idem, LeasedOp

H = TypeVar("H")

_LEASE = timedelta(minutes=1)
_EVERY = timedelta(seconds=10)

_log = logging.getLogger("pyidem")


class Sweeper(Sweeping[LeasedOp[H]], Generic[H]):
    """Claims lapsed keys and hands each to `resolver`, which finds out what happened and ends it.

    `resolver(op)` gets what `idem.leased` binds: `op.state` and `op.recovery_point` say how far the owner was, and
    `op.lapsed` what is known of the lapse. It ends with `op.complete` (best within `op.transaction()`), `op.release`
    (it did not happen) or `op.defer` (not known yet). An exception, or an end without any of these, defers with a delay
    that grows with every claim of the key; after `max_claims` of its policy it waits for a person.

    `policy` and `scope` restrict what is claimed. A heartbeat renews the `lease` of each claim while the resolver
    works, so a source with more than one connection is needed. `timeout` is how long the resolver may take: then the
    key is deferred, and the resolver, which no thread can be made to leave, can store nothing more. `concurrency` keys
    are settled at a time, each in a thread; several sweepers may run, too, in any number of processes. `http` is for
    keys of requests: the policy judges the answer by its status, as it does in a block of an `HttpCall`.

    Logged to `pyidem`: `sweeper.completed`, `.released`, `.deferred`, `.failed`, `.lost`, each with `idem_scope`,
    `idem_key`, `idem_policy`, `idem_attempt`, `idem_claims`, `idem_seconds`, and `idem_reason` where it failed;
    `sweeper.unreachable`. The `on_decision` of `idem` is told of each as `sweep`.
    """

    def __init__(
        self,
        idem: Idem[H],
        resolver: Callable[[LeasedOp[H]], Any],
        policy: str | None = None,
        scope: str | None = None,
        *,
        lease: timedelta = _LEASE,
        timeout: timedelta | None = None,
        concurrency: int = 1,
        http: bool = False,
    ) -> None:
        require_flavour(resolver, asynchronous=False, what="resolver", owner="Sweeper")
        super().__init__(
            idem.source,
            LeasedOp,
            policy=policy,
            scope=scope,
            lease=lease,
            timeout=timeout,
            concurrency=concurrency,
            http=http,
            on_decision=idem.on_decision,
        )
        self._resolver = resolver
        self._wakings: SimpleQueue[None] = SimpleQueue()  # its put is safe in the handler of a signal

    def run_once(self, limit: int | None = None) -> Swept:
        """Settle what can be claimed now, at most `limit` keys, and return the counts."""
        return run(self.sweep(limit))

    def run(self, every: timedelta = _EVERY, *, signals: bool = True) -> Swept:
        """Sweep every so often until `stop` is called, or SIGTERM or SIGINT comes; return the counts.

        What is being settled is ended first. Where the database cannot be reached it waits, up to a minute. `signals`
        says whether it may handle those signals while it runs, which it can in the main thread only.
        """
        if not signals:
            return run(self.sweep_on(every))
        with stopping(self.stop):
            return run(self.sweep_on(every))

    def _settle(self) -> str | None:
        return run_around(self.settle_next(), self._resolve)

    def _resolve(self, op: LeasedOp[H]) -> None:
        if self._timeout is None:
            self._resolver(op)
            return
        done: Future[Any] = Future()
        context = contextvars.copy_context()
        threading.Thread(
            target=context.run, args=(_fulfil, done, partial(self._resolver, op)), name="pyidem-resolver", daemon=True
        ).start()
        wait([done], self._timeout)
        if not done.done():
            done.add_done_callback(partial(_came_late, op))
            raise ResolverTimeout(f"the resolver did not end within {self._timeout:g} s")
        done.result()

    def _side_by_side(self, flows: list[Flow[None]]) -> None:
        if len(flows) == 1:
            run(flows[0])
            return
        with ThreadPoolExecutor(len(flows), "pyidem-sweeper") as threads:
            ended = [threads.submit(run, flow) for flow in flows]
        for each in ended:
            each.result()

    def _pause(self, seconds: float) -> None:
        with suppress(Empty):
            self._wakings.get(timeout=seconds)

    def _wake(self) -> None:
        self._wakings.put(None)


class AsyncSweeper(Sweeping[AsyncLeasedOp[H]], Generic[H]):
    """The same for `AsyncIdem` and an `async def` resolver, in asyncio; a timeout cancels the resolver."""

    def __init__(
        self,
        idem: AsyncIdem[H],
        resolver: Callable[[AsyncLeasedOp[H]], Awaitable[Any]],
        policy: str | None = None,
        scope: str | None = None,
        *,
        lease: timedelta = _LEASE,
        timeout: timedelta | None = None,
        concurrency: int = 1,
        http: bool = False,
    ) -> None:
        require_flavour(resolver, asynchronous=True, what="resolver", owner="Sweeper")
        super().__init__(
            idem.source,
            AsyncLeasedOp,
            policy=policy,
            scope=scope,
            lease=lease,
            timeout=timeout,
            concurrency=concurrency,
            http=http,
            on_decision=idem.on_decision,
        )
        self._resolver = resolver
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    async def run_once(self, limit: int | None = None) -> Swept:
        """Settle what can be claimed now, at most `limit` keys, and return the counts."""
        return await run_async(self.sweep(limit))

    async def run(self, every: timedelta = _EVERY, *, signals: bool = True) -> Swept:
        """Sweep every so often until `stop` is called, or SIGTERM or SIGINT comes: see `Sweeper.run`.

        Cancelled, it defers what is being settled.
        """
        self._loop = asyncio.get_running_loop()
        if not signals:
            return await run_async(self.sweep_on(every))
        with stopping(self.stop):
            return await run_async(self.sweep_on(every))

    async def _settle(self) -> str | None:
        return await run_around_async(self.settle_next(), self._resolve)

    async def _resolve(self, op: AsyncLeasedOp[H]) -> None:
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                await self._resolver(op)
        except TimeoutError as error:
            if limit.expired():
                raise ResolverTimeout(f"the resolver did not end within {self._timeout:g} s") from error
            raise

    async def _side_by_side(self, flows: list[Flow[None]]) -> None:
        ended = await asyncio.gather(*(run_async(flow) for flow in flows), return_exceptions=True)
        for each in ended:
            if each is not None:
                raise each

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    def _wake(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._woken.set)


def _fulfil(done: Future[Any], work: Callable[[], Any]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised again where the result is wanted
        done.set_exception(error)


def _came_late(op: LeasedOp[Any], done: Future[Any]) -> None:
    _log.warning("sweeper.resolver_ended_late", extra=op.names, exc_info=done.exception())

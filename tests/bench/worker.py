"""Does operations from Python as fast as some clients can, on demand: one JSON object in, one out, line by line.

In: `candidate`, `clients`, `seconds`. Out: `operations` for each second that passed, and the latencies in milliseconds.
A candidate is a function of a module in tests/bench/candidates: it is given the connection string and the number of
clients, and yields the operation, a plain or an asynchronous function of a unique text. Only that is timed.
"""

import argparse
import asyncio
import importlib
import inspect
import json
import logging
import os
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

Candidate = Callable[[str, int], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
WARM_UP = 12
WARM_UP_SECONDS = 0.5


class Tally:
    """What the clients of one measurement have done."""

    def __init__(self, clients: int, seconds: float) -> None:
        self.took: list[float] = []
        self.started = threading.Barrier(clients)
        self.seconds = seconds
        self.finished: list[float] = []

    def answer(self) -> dict[str, float]:
        """Return the numbers."""
        cuts = statistics.quantiles(self.took, n=100) if len(self.took) > 1 else [self.took[0]] * 99
        return {
            "speed": sum(self.finished),
            "operations": len(self.took),
            "p50": cuts[49] * 1000,
            "p99": cuts[98] * 1000,
        }


def names() -> Callable[[], str]:
    """Return a function that makes texts which no other process makes."""
    prefix, count = f"{os.getpid()}-{time.monotonic_ns()}", iter(range(1 << 62))
    return lambda: f"{prefix}-{next(count)}"


def run_threads(operation: Callable[[str], object], clients: int, seconds: float) -> Tally:
    """Run the operation in threads."""
    tally, name = Tally(clients, seconds), names()

    def work() -> None:
        began = time.perf_counter()
        for _ in range(WARM_UP):
            operation(name())
            if time.perf_counter() - began > WARM_UP_SECONDS:
                break
        tally.started.wait()
        took: list[float] = []
        began = now = time.perf_counter()
        while now - began < seconds:
            operation(name())
            after = time.perf_counter()
            took.append(after - now)
            now = after
        tally.took += took
        tally.finished.append(len(took) / (now - began))

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(tally.finished) < clients:
        raise SystemExit("a client has failed")
    return tally


async def run_tasks(operation: Callable[[str], Awaitable[object]], clients: int, seconds: float) -> Tally:
    """Run the operation in tasks."""
    tally, name = Tally(clients, seconds), names()

    async def warm_up() -> None:
        began = time.perf_counter()
        for _ in range(WARM_UP):
            await operation(name())
            if time.perf_counter() - began > WARM_UP_SECONDS:
                break

    async def work() -> None:
        took: list[float] = []
        began = now = time.perf_counter()
        while now - began < seconds:
            await operation(name())
            after = time.perf_counter()
            took.append(after - now)
            now = after
        tally.took += took
        tally.finished.append(len(took) / (now - began))

    await asyncio.gather(*(warm_up() for _ in range(clients)))
    await asyncio.gather(*(work() for _ in range(clients)))
    return tally


def measure(runner: asyncio.Runner, dsn: str, order: dict[str, Any]) -> dict[str, float]:
    """Measure what was asked for."""
    module, _, function = order["candidate"].partition(":")
    candidate: Candidate = getattr(importlib.import_module(f"tests.bench.candidates.{module}"), function)
    opened = candidate(dsn, order["clients"])
    if isinstance(opened, AbstractContextManager):
        with opened as operation:
            return run_threads(operation, order["clients"], order["seconds"]).answer()

    async def measured() -> Tally:
        async with opened as operation:
            assert inspect.iscoroutinefunction(operation)
            return await run_tasks(operation, order["clients"], order["seconds"])

    return runner.run(measured()).answer()


def main() -> None:
    """Answer orders until there are no more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dsn")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    answers, sys.stdout = sys.stdout, sys.stderr
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            print(json.dumps(measure(runner, options.dsn, json.loads(line))), file=answers, flush=True)
    os._exit(0)  # threads and pools of candidates may hold on


if __name__ == "__main__":
    main()

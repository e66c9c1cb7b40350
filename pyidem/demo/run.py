"""One run of the demonstration, from an empty directory to the verdict."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

import psycopg

from pyidem.demo.clients import Clients
from pyidem.demo.fate import Fate
from pyidem.demo.interrupt import run_until_interrupted
from pyidem.demo.operations import plan, plan_unknown
from pyidem.demo.options import Options
from pyidem.demo.processes import Assassin
from pyidem.demo.proxy import Hazards
from pyidem.demo.record import Record
from pyidem.demo.service import AtProvider
from pyidem.demo.stage import Report, stage
from pyidem.demo.unknown import MakeResolver, Unknown, play
from pyidem.demo.verdict import Effects, Violation, judge, measure

TO_SERVICE: Final = Hazards(
    request_lost=0.06,
    answer_lost=0.08,
    answer_cut=0.06,
    duplicated=0.15,
    delayed=0.05,
    delay=0.2,
    fates={Fate.DIE_IN_TRANSACTION: 0.01, Fate.DIE_AFTER_PROVIDER: 0.03},
)
# A delay is longer than the service waits for the provider.
TO_PROVIDER: Final = Hazards(request_lost=0.1, answer_lost=0.1, answer_cut=0.05, delayed=0.02, delay=1.5)

Progress: TypeAlias = Callable[[int], None]


class ServiceFailed(RuntimeError):
    """A worker answered 500: something went wrong that is no part of the demonstration."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `seconds` is the time that the clients were at work."""

    options: Options
    record: Record
    effects: Effects
    unknown: Unknown
    calls_retried: int
    most_attempts: int
    workers_killed: int
    seconds: float
    violations: list[Violation]


def run(options: Options, report: Report, progress: Progress, *, make_resolver: MakeResolver = AtProvider) -> Outcome:
    """Run the demonstration. `report` is told what begins, `progress` how many operations are answered.

    `make_resolver` is for tests: it makes what finds out for the sweeper.
    """
    return run_until_interrupted(_run(options, report, progress, make_resolver))


async def _run(options: Options, report: Report, progress: Progress, make_resolver: MakeResolver) -> Outcome:
    rng = Random(options.seed)  # noqa: S311 - chance, not secrets
    operations, by_bank = plan(options.operations, rng), plan_unknown(options.by_bank, rng)
    record = Record([*operations, *by_bank])
    async with stage(
        options.workers,
        report,
        to_service=TO_SERVICE,
        to_provider=TO_PROVIDER,
        lease="1 second",
        patience=1,
        seed=options.seed,
        observe=record.observe,
    ) as site:
        clients = Clients(site.port, record, options.seed)

        def look() -> None:
            if record.errors:
                raise ServiceFailed(f"a worker answered: {record.errors[0].decode(errors='replace')}\n{site.log()}")
            progress(clients.answered)

        report(f"{len(operations)} refunds by {options.clients} clients, {options.workers} workers")
        began = time.monotonic()
        with Assassin(site.workers, options.kill_every, rng):
            await site.watch(asyncio.ensure_future(clients.perform(operations, options.clients)), look)
        unknown = await play(site, clients, by_bank, report, look=look, make_resolver=make_resolver)
        seconds = time.monotonic() - began
        report("Asking the databases what came of it")
        with psycopg.connect(site.shop) as shop, psycopg.connect(site.provider) as provider:
            violations = judge(
                shop,
                provider,
                [*operations, *by_bank],
                unknown,
                answers=record.answers,
                reuse=record.reuse,
                unanswered=clients.unanswered,
            )
            effects = measure(shop, provider)
        killed = sum(worker.deaths for worker in site.workers)
    return Outcome(
        options, record, effects, unknown, clients.retried, clients.most_attempts, killed, seconds, violations
    )

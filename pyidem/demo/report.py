"""What a run looks like to its user: progress while it lasts, then a table and the verdict, or JSON."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pyidem.demo.record import Result
from pyidem.demo.run import Outcome
from pyidem.demo.verdict import Violation

_SECONDS_BETWEEN_LINES = 2
_KEYS_SHOWN = 20


@contextmanager
def progress(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far the clients have got: a bar on a terminal, otherwise a line now and then."""
    if console.is_terminal:
        columns = (TextColumn("Operations answered"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda answered: bar.update(task, completed=answered)
        return
    last = time.monotonic()

    def line(answered: int) -> None:
        nonlocal last
        if answered == total or time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            console.print(f"{answered} of {total} operations answered")

    yield line


def as_document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as what --json prints. The results of attempts add up to the attempts sent."""
    record = outcome.record
    return {
        **asdict(outcome.options),
        "seconds": round(outcome.seconds, 2),
        "attempts": record.attempts.total(),
        "results": {result.value: record.attempts[result] for result in Result},
        "duplicates_in_parallel": record.duplicates,
        "calls_retried": outcome.calls_retried,
        "most_attempts": outcome.most_attempts,
        "workers_killed": outcome.workers_killed,
        "unknown": asdict(outcome.unknown),
        "effects": asdict(outcome.effects),
        "violations": [asdict(violation) for violation in outcome.violations],
        "ok": not outcome.violations,
    }


def show(console: Console, outcome: Outcome) -> None:
    """Print the table and the verdict."""
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, show_header=False, pad_edge=False)
    table.add_column("what")
    table.add_column("count", justify="right")
    for name, count in _rows(outcome):
        table.add_row(name, f"{count:,}")
    console.print()
    console.print(table)
    console.print()
    if outcome.violations:
        console.print("FAILED: retries were not safe.", style="bold red")
        for violation in outcome.violations:
            console.print(f"  {_describe(violation)}")
        return
    console.print(
        f"OK: each of {outcome.options.total:,} operations took effect exactly once, "
        f"and every retry got the same answer. ({outcome.seconds:.1f} s)",
        style="bold green",
    )


def _rows(outcome: Outcome) -> list[tuple[str, int]]:
    attempts, effects = outcome.record.attempts, outcome.effects
    return [
        ("Operations asked for", outcome.options.total),
        ("Attempts sent", attempts.total()),
        ("  answered by doing the work", attempts[Result.COMPLETED]),
        ("  answered by replay", attempts[Result.REPLAYED]),
        ("  refused as in progress (409)", attempts[Result.IN_PROGRESS]),
        ("  refused as unknown (409)", attempts[Result.UNKNOWN]),
        ("  refused as reused for another request (422)", attempts[Result.REUSED]),
        ("  failed with an unknown outcome (503)", attempts[Result.FAILED]),
        ("  requests lost", attempts[Result.REQUEST_LOST]),
        ("  answers lost or cut after the work", attempts[Result.ANSWER_LOST]),
        ("  cut off by the death of a worker", attempts[Result.CUT_OFF]),
        ("Duplicates sent in parallel", outcome.record.duplicates),
        ("Calls that needed more than one attempt", outcome.calls_retried),
        ("Most attempts that one call needed", outcome.most_attempts),
        ("Workers killed (-9)", outcome.workers_killed),
        ("Taken over from a dead or silent owner", effects.taken_over),
        ("Unknown outcomes when all workers had died", outcome.unknown.outcomes),
        ("  found out by the sweeper", outcome.unknown.swept.completed),
        ("Calls to the payment provider", effects.provider_calls),
        ("Transfers that the provider made", effects.transfers),
        ("Refunds committed", effects.refunds),
        ("Cents refunded", effects.refunded_cents),
    ]


def _describe(violation: Violation) -> str:
    if not violation.keys:
        return violation.what
    shown = ", ".join(violation.keys[:_KEYS_SHOWN])
    more = len(violation.keys) - _KEYS_SHOWN
    return f"{len(violation.keys)} x {violation.what}: {shown}{f' and {more} more' if more > 0 else ''}"

"""The command line of the demonstration."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from pyidem.demo import report
from pyidem.demo.network import ServiceFailed
from pyidem.demo.processes import ChildFailed
from pyidem.demo.run import Options, new_seed, run
from pyidem.embedded import ClusterError

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

_DEFAULTS = Options()
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@app.command(epilog="Exit codes: 0 proved, 1 a promise was broken or the run failed, 2 wrong usage, 130 interrupted.")
def demo(
    *,
    operations: Annotated[int, typer.Option(min=1, max=99_999, help="How many refunds.")] = _DEFAULTS.operations,
    workers: Annotated[int, typer.Option(min=1, max=32, help="How many worker processes.")] = _DEFAULTS.workers,
    clients: Annotated[int, typer.Option(min=1, max=64, help="How many clients at the same time.")] = _DEFAULTS.clients,
    kill_every: Annotated[
        float, typer.Option(min=0, help="Seconds between two random kill -9 of a worker, on average; 0: none.")
    ] = _DEFAULTS.kill_every,
    seed: Annotated[
        int | None, typer.Option(help="Repeats the operations and their misfortunes, not the exact timing.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a refund service on a hostile network and prove that nothing ran twice.

    Starts a throwaway PostgreSQL server, a simulated payment provider and several worker processes. Requests and
    answers get lost, requests arrive at several workers at once, workers are killed in the middle of their work. In the
    end the databases are asked: one refund for each operation, one transfer at the provider, the same answer to every
    retry.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    options = Options(operations, workers, clients, kill_every, new_seed() if seed is None else seed)
    console.print(f"Seed {options.seed}")
    try:
        with _interruptible(), report.progress(console, operations) as progress:
            outcome = run(options, console.print, progress)
    except (ChildFailed, ServiceFailed, ClusterError) as error:
        console.print(f"pyidem.demo: {error}", markup=False)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print("Interrupted; everything was stopped.")
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(report.as_document(outcome), indent=2))
    else:
        report.show(Console(highlight=False, soft_wrap=True), outcome)
    if outcome.violations:
        raise typer.Exit(1)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn the first signal to end into KeyboardInterrupt, and let no other disturb the cleaning up."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def interrupt(*_: object) -> NoReturn:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup, for one, wants it so
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

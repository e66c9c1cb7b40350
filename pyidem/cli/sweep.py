"""`pyidem sweep`."""

import asyncio
import importlib
import inspect
import logging
import sys
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from pyidem import AsyncIdem, AsyncSweeper, Idem, Sweeper, Swept, _calls
from pyidem._signals import stopping
from pyidem.cli.common import Dsn, Exit, Json, fail, parse_duration
from pyidem.cli.connection import call, connected, explained
from pyidem.cli.keys import Policy, Scope
from pyidem.cli.output import write_json, write_table

_RIGHT = "grant_resolver"
_LEASE = timedelta(minutes=1)


def sweep(
    *,
    dsn: Dsn = "",
    resolver: Annotated[
        str,
        typer.Option(
            metavar="MODULE:NAME",
            help="A function that takes op, sync or async; or a Sweeper or AsyncSweeper with a database of its own.",
            show_default=False,
        ),
    ],
    policy: Policy = None,
    scope: Scope = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many keys.", show_default=False)] = None,
    every: Annotated[
        timedelta | None,
        typer.Option(
            parser=parse_duration,
            metavar="DURATION",
            help="Sweep again and again, with this pause, until SIGTERM or SIGINT. Without it: once.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        timedelta | None,
        typer.Option(
            parser=parse_duration,
            metavar="DURATION",
            help="How long the resolver may take for one key.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many keys at a time.")] = 1,
    http: Annotated[
        bool, typer.Option("--http", help="The keys are those of requests: the policy judges answers by their status.")
    ] = False,
    json: Json = False,
) -> None:
    """Settle lapsed keys: claim them, and hand each to the resolver, which finds out what happened.

    What the resolver cannot tell is deferred and comes again later. What becomes of each key is logged on standard
    error. The module is looked for in the current directory, too.
    """
    if every is not None and limit is not None:
        raise typer.BadParameter("--limit is for a single sweep, without --every.")
    for option, given in (("--every", every), ("--timeout", timeout)):
        if given == timedelta(0):
            raise typer.BadParameter(f"{option} must be longer than nothing.")
    found = _load(resolver)
    _log_to_stderr()
    with explained(dsn, right=_RIGHT):
        if isinstance(found, Sweeper | AsyncSweeper):
            if (policy, scope, timeout, concurrency) != (None, None, None, 1):
                raise typer.BadParameter(
                    "a sweeper of your own has its policy, scope, timeout and concurrency already."
                )
            swept = _run(found, every, limit)
        else:
            if every is None:  # else it waits for the database
                with connected(dsn, right=_RIGHT) as connection:
                    call(connection, _calls.version())
            options = {
                "policy": policy,
                "scope": scope,
                "timeout": timeout,
                "concurrency": concurrency,
                "http": http,
            }
            swept = _with_pool(dsn, found, every, limit, options)
    if json:
        write_json(asdict(swept))
    else:
        write_table([asdict(swept)], list(asdict(swept)))
    if swept.failed:
        raise typer.Exit(Exit.PARTLY if swept.claimed > swept.failed else Exit.FAILED)


def _with_pool(dsn: str, resolver: Any, every: timedelta | None, limit: int | None, options: dict[str, Any]) -> Swept:
    # of each key that is being settled: its transaction, and the heartbeat
    size = {"min_size": 1, "max_size": 2 * options["concurrency"]}
    if not _is_async(resolver):
        with ConnectionPool(dsn, open=True, **size) as pool:
            return _run(Sweeper(Idem(pool), resolver, **options), every, limit)

    async def run() -> Swept:
        async with AsyncConnectionPool(dsn, open=False, **size) as pool:
            return await _run_async(AsyncSweeper(AsyncIdem(pool), resolver, **options), every, limit)

    return asyncio.run(run())


def _run(sweeper: Sweeper[Any] | AsyncSweeper[Any], every: timedelta | None, limit: int | None) -> Swept:
    if isinstance(sweeper, AsyncSweeper):
        return asyncio.run(_run_async(sweeper, every, limit))
    if every is not None:
        return sweeper.run(every)
    with stopping(sweeper.stop):
        return sweeper.run_once(limit)


async def _run_async(sweeper: AsyncSweeper[Any], every: timedelta | None, limit: int | None) -> Swept:
    if every is not None:
        return await sweeper.run(every)
    with stopping(sweeper.stop):
        return await sweeper.run_once(limit)


def _load(path: str) -> Any:
    """Import what MODULE:NAME names."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise typer.BadParameter(f"--resolver is written MODULE:NAME, not {path!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        fail(f"there is no module {error.name!r} for --resolver {path}")
    for part in name.split("."):
        if not hasattr(found, part):
            fail(f"there is no {part!r} in {module_name} for --resolver {path}")
        found = getattr(found, part)
    if not callable(found) and not isinstance(found, Sweeper | AsyncSweeper):
        fail(f"{path} is neither a function nor a sweeper")
    return found


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _log_to_stderr() -> None:
    """Print what is logged, unless the module of the resolver has said where that goes."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _Formatter(logging.Formatter):
    """Adds what a record knows of its key."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is the base class's
        known = {name.removeprefix("idem_"): value for name, value in vars(record).items() if name.startswith("idem_")}
        return " ".join([super().formatMessage(record), *(f"{name}={value!r}" for name, value in known.items())])

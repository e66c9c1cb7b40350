"""`pyidem purge`."""

import threading
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated

import psycopg
import typer
from psycopg import errors

from pyidem._signals import stopping
from pyidem.cli.common import Dsn, Json, describe, parse_duration, stderr
from pyidem.cli.connection import explained
from pyidem.cli.output import write_json

_LONGEST = timedelta(seconds=45)
_BATCH = """
select removed, current_setting('idem_private.purge_reached')
from (select set_config('idem_private.purge_from', %s, true)) as begins, idem.purge(%s) as removed
"""


@dataclass(frozen=True)
class Purged:
    """What one run did."""

    removed: int
    caught_up: bool

    def __str__(self) -> str:
        keys = "1 key" if self.removed == 1 else f"{self.removed} keys"
        return f"Removed {keys}." if self.caught_up else f"Removed {keys}; more have expired."


def parse_period(text: str) -> timedelta:
    """Read 60, which is seconds, or 90s, 15m and the like."""
    return parse_duration(f"{text}s" if text.isdecimal() else text)


def purge(
    *,
    dsn: Dsn = "",
    every: Annotated[
        timedelta | None,
        typer.Option(
            parser=parse_period,
            metavar="SECONDS",
            help="Purge again and again, so long apart, until SIGTERM or SIGINT. Without it: once.",
            show_default=False,
        ),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="The size of a batch, each a transaction of its own.")] = 10_000,
    max_time: Annotated[
        timedelta | None,
        typer.Option(
            parser=parse_period,
            metavar="SECONDS",
            help="How long a run may take. Default: 45s, or three quarters of --every.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Remove keys whose retention is over: what pg_cron does after `pyidem schedule`, where there is no pg_cron.

    Any number of these share the work. With --every a lost connection is reported and tried again.
    """
    if every is not None and every <= timedelta(0):
        raise typer.BadParameter("--every must be longer than nothing.")
    longest = max_time or min(_LONGEST, (every or _LONGEST * 2) * 0.75)
    if every is not None and longest >= every:
        raise typer.BadParameter("--max-time must be shorter than --every.")
    purger = _Purger(dsn, max_rows, longest, json=json)
    with explained(dsn, right="grant_operator"), stopping(purger.stop):
        purger.once()
        if every is not None:
            purger.go_on(every)


class _Purger:
    """Purges until it is told to stop; a batch that is under way is then rolled back."""

    def __init__(self, dsn: str, max_rows: int, longest: timedelta, *, json: bool) -> None:
        self._dsn = dsn
        self._max_rows = max_rows
        self._longest = longest.total_seconds()
        self._json = json
        self._stopped = threading.Event()
        self._connection: psycopg.Connection | None = None

    def go_on(self, every: timedelta) -> None:
        """Wait, purge, and so on."""
        while not self._stopped.wait(every.total_seconds()):
            try:
                self.once()
            except psycopg.OperationalError as error:
                stderr.print(f"pyidem: {describe(error)}")

    def once(self) -> None:
        """Purge until nothing is left or the time is over."""
        with psycopg.connect(self._dsn, autocommit=True, fallback_application_name="pyidem") as connection:
            self._connection = connection
            try:
                purged = self._purge_all(connection)
            except errors.QueryCanceled:
                if not self._stopped.is_set():
                    raise
                return
            finally:
                self._connection = None
        if self._json:
            write_json(asdict(purged))
        else:
            typer.echo(str(purged))

    def _purge_all(self, connection: psycopg.Connection) -> Purged:
        """Do what idem.purge_all does, which cannot answer how much it was; nothing is set beyond a transaction."""
        began = time.monotonic()
        removed, reached = 0, ""
        while True:
            batch_began = time.monotonic()
            [(count, reached)] = connection.execute(_BATCH, [reached, self._max_rows]).fetchall()
            removed += count
            now = time.monotonic()
            batch_time = now - batch_began
            if not reached or now - began + 2 * batch_time > self._longest or self._stopped.wait(batch_time):
                return Purged(removed, caught_up=not reached)

    def stop(self) -> None:
        """Stop now, from a handler of signals."""
        self._stopped.set()
        if self._connection is not None:
            self._connection.cancel()

"""`pyidem purge`."""

import json as json_
import threading
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
        self._longest = longest
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
                purged = _purge_all(connection, self._max_rows, self._longest)
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

    def stop(self) -> None:
        """Stop now, from a handler of signals."""
        self._stopped.set()
        if self._connection is not None:
            self._connection.cancel()


def _purge_all(connection: psycopg.Connection, max_rows: int, longest: timedelta) -> Purged:
    """Call the procedure. It answers nothing; what it did comes as a message, of the level that pg_cron ignores."""
    told: list[Purged] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        if notice.message_detail and '"caught_up"' in notice.message_detail:
            told.append(Purged(**json_.loads(notice.message_detail)))

    connection.add_notice_handler(hear)
    connection.execute("select set_config('client_min_messages', 'debug1', false)")
    connection.execute("call idem.purge_all(%s, %s)", [max_rows, longest])
    return told[-1]

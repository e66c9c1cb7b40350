"""`pyidem schedule`."""

import json
from datetime import timedelta
from typing import Annotated

import psycopg
import typer
from psycopg import errors

from pyidem.cli.common import Dsn, describe, fail, stderr
from pyidem.cli.connection import Connection, connected
from pyidem.cli.purge import parse_period


def schedule(
    *,
    dsn: Dsn = "",
    cron_dsn: Annotated[
        str | None,
        typer.Option(
            envvar="PYIDEM_CRON_DSN",
            help="The database of the same server that has pg_cron, where the first one has none.",
            show_default=False,
        ),
    ] = None,
    when: Annotated[
        str, typer.Option("--when", help="Five fields as cron has them, in GMT; '30 seconds' needs pg_cron 1.5.")
    ] = "* * * * *",
    max_rows: Annotated[int, typer.Option(min=1, help="The size of a batch, each a transaction of its own.")] = 10_000,
    max_time: Annotated[
        timedelta | None,
        typer.Option(
            parser=parse_period,
            metavar="SECONDS",
            help="How long a run may take. Default: 45s, or three quarters of the time between two.",
            show_default=False,
        ),
    ] = None,
    job_name: Annotated[
        str | None, typer.Option(help="Default: pyidem purge and the database's name.", show_default=False)
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the job instead.")] = False,
) -> None:
    """Let pg_cron remove keys whose retention is over. There is one job; run again, this changes it."""
    if remove:
        if cron_dsn is not None:
            raise typer.BadParameter("--remove works where pg_cron is; elsewhere call cron.unschedule there.")
        with connected(dsn) as connection:
            _print_notices(connection)
            removed = connection.execute("select idem.unschedule() as count").fetchall()[0]["count"]
        typer.echo("Removed the job." if removed else "Nothing to do: there is no job.")
        return

    with connected(dsn) as connection:
        _print_notices(connection)
        try:
            job = connection.execute(
                "select idem.schedule(%s, %s, %s, %s) as job", [when, max_rows, max_time, job_name]
            ).fetchall()[0]["job"]
        except errors.FeatureNotSupported as error:
            if cron_dsn is None:
                raise
            job = _from_elsewhere(cron_dsn, json.loads(error.diag.message_detail or "{}")["statements"])
    typer.echo(f"Scheduled: job {job}.")


def _from_elsewhere(cron_dsn: str, statements: list[str]) -> int:
    """Run the statements in the database that has pg_cron, and return the id of the first job."""
    try:
        with psycopg.connect(cron_dsn, fallback_application_name="pyidem") as cron:
            jobs = [cron.execute(statement.encode()).fetchall()[0][0] for statement in statements]
    except psycopg.Error as error:
        fail(f"in the database of --cron-dsn: {describe(error)}")
    return int(jobs[0])


def _print_notices(connection: Connection) -> None:
    connection.add_notice_handler(
        lambda notice: stderr.print(f"pyidem: {notice.message_primary}\n  {notice.message_hint}")
    )

"""`pyidem current`."""

import typer

from pyidem import migrate
from pyidem.cli.common import Dsn, reported


def current(*, dsn: Dsn = "") -> None:
    """Show the installed revision. Changes nothing."""
    with reported():
        revision = migrate.current(dsn)
    if revision is None:
        typer.echo("not installed")
    else:
        typer.echo(f"{revision} (head)" if revision == migrate.head() else revision)

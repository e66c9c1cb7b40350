"""`pyidem current`."""

import typer

from pyidem.cli.common import Dsn
from pyidem.cli.migrating import migrating


def current(*, dsn: Dsn = "") -> None:
    """Show the installed revision. Changes nothing."""
    with migrating() as migrate:
        revision = migrate.current(dsn)
        newest = migrate.head()
    if revision is None:
        typer.echo("not installed")
    else:
        typer.echo(f"{revision} (head)" if revision == newest else revision)

"""`pyidem upgrade`."""

from typing import Annotated

import typer

from pyidem.cli.common import Dsn
from pyidem.cli.migrating import migrating


def upgrade(
    revision: Annotated[str, typer.Argument(help="Where to go: a revision, +N, or head.")] = "head",
    *,
    dsn: Dsn = "",
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL from an empty database on, without connecting.")
    ] = False,
) -> None:
    """Install pyidem, or bring it to a newer revision, in one transaction.

    The role needs CREATE on the database and becomes the owner; later upgrades must be run by the same role.
    """
    with migrating() as migrate:
        if sql:
            typer.echo(migrate.sql(to=revision), nl=False)
            return
        applied = migrate.upgrade(dsn, revision)
        if applied:
            typer.echo(f"Upgraded to {applied[-1]}.")
        else:
            typer.echo(f"Nothing to do: at {migrate.current(dsn)}.")

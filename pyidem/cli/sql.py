"""`pyidem sql`."""

from typing import Annotated

import typer

from pyidem.cli.migrating import migrating


def sql(
    *,
    from_: Annotated[str, typer.Option("--from", help="The installed revision, or base.")] = "base",
    to: Annotated[str, typer.Option("--to", help="The wanted revision: an older one renders a downgrade.")] = "head",
) -> None:
    """Print the SQL from one revision to another, without connecting.

    It is one transaction without psql commands, for any tool or language. With psql: psql -X -q -o /dev/null -v
    ON_ERROR_STOP=1 -f FILE.
    """
    with migrating() as migrate:
        typer.echo(migrate.sql(from_, to), nl=False)

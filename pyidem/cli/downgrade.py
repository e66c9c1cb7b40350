"""`pyidem downgrade`."""

from typing import Annotated

import typer

from pyidem.cli.common import Dsn, ask
from pyidem.cli.migrating import migrating


def downgrade(
    revision: Annotated[str, typer.Argument(help="Where to go: a revision, -N, or base.")],
    *,
    dsn: Dsn = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before keys are forgotten.")] = False,
) -> None:
    """Go back to an older revision, in one transaction.

    base removes everything but the version table and forgets all keys: a retry of anything done before would then run
    again. Objects of others that depend on pyidem are never dropped; the downgrade stops and names them.
    """
    with migrating() as migrate:
        if not yes and migrate.forgets_keys(dsn, revision):
            _confirm(migrate.count_keys(dsn))
        undone = migrate.downgrade(dsn, revision)
        if undone:
            typer.echo(f"Downgraded to {migrate.current(dsn) or 'base'}.")
        else:
            typer.echo(f"Nothing to do: at {migrate.current(dsn) or 'base'}.")


def _confirm(keys: int) -> None:
    if keys == 0:
        return
    warning = f"this forgets {keys} stored {'key' if keys == 1 else 'keys'}: retries of what they protect run again"
    ask(f"{warning}.", yes=False)

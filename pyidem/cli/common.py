"""What the commands share: the --dsn option, and errors as one short message."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import psycopg
import typer
from alembic.util import CommandError
from psycopg import errors
from rich.console import Console
from sqlalchemy.exc import DBAPIError

Dsn = Annotated[
    str,
    typer.Option(
        envvar="PYIDEM_DSN",
        help="The database, as a URI or key=value pairs; what is not said comes from the PG* variables.",
        show_default=False,
    ),
]

stderr = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def fail(message: str) -> NoReturn:
    """Print a message and exit with 1."""
    stderr.print(f"pyidem: {message}")
    raise typer.Exit(1)


@contextmanager
def reported() -> Iterator[None]:
    """Turn the errors that a user can meet into a message and exit code 1."""
    try:
        yield
    except CommandError as error:
        fail(str(error))
    except DBAPIError as error:
        if not isinstance(error.orig, psycopg.Error):
            raise
        fail(_describe(error.orig))


def _describe(error: psycopg.Error) -> str:
    if error.diag.message_primary is None:
        return f"cannot connect: {' '.join(str(error).split())}"
    lines = [f"{error.diag.message_primary} (SQLSTATE {error.sqlstate})"]
    if error.diag.message_detail:
        lines.append(error.diag.message_detail)
    if isinstance(error, errors.DependentObjectsStillExist):
        # The server's own hint is CASCADE, which would drop what belongs to others.
        lines.append("Drop or change these objects first.")
    elif error.diag.message_hint:
        lines.append(error.diag.message_hint)
    return "\n  ".join(lines)

"""What the commands share: options, exit codes, questions, and what they say of an error."""

import re
import sys
from datetime import timedelta
from enum import IntEnum
from typing import Annotated, NoReturn

import psycopg
import typer
from psycopg import errors
from rich.console import Console

Dsn = Annotated[
    str,
    typer.Option(
        envvar="PYIDEM_DSN",
        help="The database, as a URI or key=value pairs; what is not said comes from the PG* variables.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

stderr = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


class Exit(IntEnum):
    """How a command ends."""

    DONE = 0
    FAILED = 1
    """Refused, or failed: nothing was changed, or the message says what was."""
    USAGE = 2
    PARTLY = 3
    """Of several things some were done and some were not."""


def fail(message: str) -> NoReturn:
    """Print a message and exit with 1."""
    stderr.print(f"pyidem: {message}")
    raise typer.Exit(Exit.FAILED)


def ask(question: str, *, yes: bool) -> None:
    """Go on only if that is wanted; where nobody can be asked, --yes must have been given."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{question} Give --yes to go on.")
    if not typer.confirm(f"pyidem: {question} Go on?", err=True):
        raise typer.Exit(Exit.FAILED)


_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def parse_duration(text: str) -> timedelta:
    """Read 90s, 15m, 1h30m and the like: a `parser` for options."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise typer.BadParameter(f"{text!r} is no duration: write 30s, 15m, 1h30m or 7d.")
    try:
        return sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    except OverflowError:
        raise typer.BadParameter(f"{text!r} is too long.") from None


def describe(error: psycopg.Error) -> str:
    """Say in a few lines what went wrong in the database, and what to do."""
    if error.diag.message_primary is None:
        return f"cannot connect: {' '.join(str(error).split())}"
    lines = [f"{error.diag.message_primary} (SQLSTATE {error.sqlstate})"]
    detail = error.diag.message_detail
    # That of pyidem's own errors is for programs, and says nothing that the message does not.
    if detail and not detail.startswith("{"):
        lines.append(detail)
    if isinstance(error, errors.DependentObjectsStillExist):
        # The server's own hint is CASCADE, which would drop what belongs to others.
        lines.append("Drop or change these objects first.")
    elif error.diag.message_hint:
        lines.append(error.diag.message_hint)
    return "\n  ".join(lines)

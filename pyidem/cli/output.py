"""What the commands print: tables for people, JSON for programs. Both go to standard output, messages do not."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNLIMITED = 100_000


def stdout() -> Console:
    """Return what tables are printed on. Where that is no terminal nothing is folded, so that lines can be searched."""
    width = None if sys.stdout.isatty() else _UNLIMITED
    return Console(highlight=False, markup=False, width=width)


def write_json(value: Any) -> None:
    """Print one JSON value: times in ISO 8601, lengths of time in seconds."""
    typer.echo(json.dumps(value, default=_plain, ensure_ascii=False, indent=2))


def write_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print rows as a table, their columns under these names."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row[column])) for column in columns))
    console = stdout()
    with console.capture() as printed:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def cell(value: Any) -> str:
    """Return a value as people read it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.isoformat(" ", "seconds")
        case timedelta():
            return length(value)
        case dict() | list():
            return json.dumps(value, default=_plain, ensure_ascii=False)
        case _:
            return _visible(str(value))


def length(value: timedelta) -> str:
    """Return a length of time, in its two greatest units."""
    if value < timedelta(0):
        return f"-{length(-value)}"
    seconds = int(value.total_seconds())
    if seconds == 0 and value:
        return f"{value.microseconds // 1000}ms"
    units = [("d", seconds // 86400), ("h", seconds // 3600 % 24), ("m", seconds // 60 % 60), ("s", seconds % 60)]
    first = next((place for place, (_, count) in enumerate(units) if count), len(units) - 1)
    shown = [f"{count}{unit}" for unit, count in units[first : first + 2] if count]
    return "".join(shown) or "0s"


def _visible(text: str) -> str:
    """Return text without what could steer a terminal."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
        case _:
            raise TypeError(f"no JSON for {type(value).__name__}")

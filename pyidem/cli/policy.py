"""`pyidem policy list`, `show`, `set` and `delete`."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from psycopg import sql

from pyidem.cli.common import Dsn, Json, Yes, ask, fail, stderr
from pyidem.cli.connection import Connection, connected, read
from pyidem.cli.output import write_json, write_table

policy = typer.Typer(
    no_args_is_help=True, help="See and change policies: named settings of retention, lease and limits."
)

Name = Annotated[str, typer.Argument(help="Of the policy.", show_default=False)]

_COLUMNS = ["name", "ttl", "lease", "on_lapse", "max_attempts", "max_claims", "retry_after", "tombstone", "profile"]


@policy.command("list")
def list_policies(*, dsn: Dsn = "", json: Json = False) -> None:
    """List the policies. The table leaves columns out, JSON does not."""
    with connected(dsn) as connection:
        rows = read(connection, "select p.* from idem.policies as p order by p.name")
    if json:
        write_json(rows)
    else:
        write_table(rows, _COLUMNS)


@policy.command()
def show(name: Name, *, dsn: Dsn = "", json: Json = False) -> None:
    """Show all settings of a policy."""
    with connected(dsn) as connection:
        rows = read(connection, "select p.* from idem.policies as p where p.name = %(name)s", {"name": name})
    if not rows:
        fail(f"there is no policy {name!r}. Make it: pyidem policy set {name}")
    _write(rows[0], json=json)


@policy.command("set")
def set_(
    name: Name,
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COLUMN=VALUE]...",
            help="A value is written as in SQL, but without quotes: ttl=7d, methods=POST,PUT. "
            "`null` and `default` mean these.",
            show_default=False,
        ),
    ] = None,
    *,
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Change settings of a policy, or make a new one; what is not named stays, or has its default.

    It takes effect at the next call, for every client and also for keys that exist. A setting that could not work is
    refused, and nothing is changed.
    """
    with connected(dsn) as connection:
        wanted = _parsed(settings or [], arrays=_columns(connection))
        rows = connection.execute(_upsert(wanted), {"name": name, **wanted}).fetchall()
        rows = rows or read(connection, "select p.* from idem.policies as p where p.name = %(name)s", {"name": name})
    _write(rows[0], json=json)


@policy.command()
def delete(name: Name, *, dsn: Dsn = "", yes: Yes = False) -> None:
    """Delete a policy. One that keys remember cannot go, nor can the shipped ones."""
    ask(f"Policy {name!r} is deleted; calls that name it will fail.", yes=yes)
    with connected(dsn) as connection:
        if not connection.execute("delete from idem.policies as p where p.name = %s", [name]).rowcount:
            fail(f"there is no policy {name!r}.")
    stderr.print(f"Deleted policy {name!r}.")


def _columns(connection: Connection) -> dict[str, bool]:
    """Return the columns that can be set, and which of them are arrays."""
    description = connection.execute("select p.* from idem.policies as p limit 0").description or []
    types = connection.adapters.types
    return {
        column.name: (known := types.get(column.type_code)) is not None and known.array_oid == column.type_code
        for column in description
        if column.name != "name"
    }


def _parsed(settings: list[str], *, arrays: Mapping[str, bool]) -> dict[str, Any]:
    """Return the values by column, as texts that the server reads; arrays also as lists."""
    wanted: dict[str, Any] = {}
    for setting in settings:
        column, equals, value = setting.partition("=")
        if not equals:
            raise typer.BadParameter(f"{setting!r}: write COLUMN=VALUE.")
        if column not in arrays:
            raise typer.BadParameter(f"there is no column {column!r}. There are: {', '.join(arrays)}.")
        if column in wanted:
            raise typer.BadParameter(f"{column} is given twice.")
        is_list = arrays[column] and not value.startswith("{") and value.lower() not in {"null", "default"}
        wanted[column] = [part.strip() for part in value.split(",")] if is_list else value
    return wanted


def _upsert(wanted: Mapping[str, Any]) -> sql.Composed:
    """Return the one statement that makes or changes a policy."""
    words = {"null": sql.SQL("null"), "default": sql.SQL("default")}
    values = [
        words.get(value.lower(), sql.Placeholder(column)) if isinstance(value, str) else sql.Placeholder(column)
        for column, value in wanted.items()
    ]
    changes = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(column)) for column in wanted]
    return sql.SQL("insert into idem.policies ({}) values ({}) on conflict (name) do {} returning *").format(
        sql.SQL(", ").join(map(sql.Identifier, ["name", *wanted])),
        sql.SQL(", ").join([sql.Placeholder("name"), *values]),
        sql.SQL("update set {}").format(sql.SQL(", ").join(changes)) if changes else sql.SQL("nothing"),
    )


def _write(row: Mapping[str, Any], *, json: bool) -> None:
    if json:
        write_json(row)
    else:
        write_table([{"column": column, "value": value} for column, value in row.items()], ["column", "value"])

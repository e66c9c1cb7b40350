"""`pyidem doctor`."""

import re
from typing import Annotated, Any
from uuid import uuid4

import psycopg
import typer
from psycopg import errors

from pyidem import __version__, _calls
from pyidem._readiness import compared
from pyidem.cli.common import Dsn, Exit, Json, describe
from pyidem.cli.connection import Connection, call, connected, read
from pyidem.cli.migrating import migrating
from pyidem.cli.output import write_json, write_table

_QUERY = "select h.check_name, h.ok, h.detail, h.fix from idem.health() as h"
_SCOPE = "pyidem doctor"
_ANSWER = b"well"

Check = dict[str, Any]


def doctor(
    *,
    dsn: Dsn = "",
    round_trip: Annotated[
        bool,
        typer.Option(
            "--round-trip", help="Reserve a key, complete it and replay it, in one transaction that is rolled back."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check the installation, and say what to do about what is wrong.

    Exits with 1 where a check fails. A check that cannot tell, marked with a question mark, is no failure.
    """
    with connected(dsn, right="grant_monitor") as connection:
        checks = [*read(connection, _QUERY)]
        checks.insert(1, program(checks[0]))
        if round_trip:
            checks.append(_round_trip(connection))
    failed = [check for check in checks if check["ok"] is False]
    if json:
        write_json({"ok": not failed, "checks": checks})
    else:
        _write(checks)
    if failed:
        raise typer.Exit(Exit.FAILED)


def program(version: Check) -> Check:
    """Compare what is installed in the database with this program. Not every version has a revision of its own."""
    with migrating() as migrate:
        newest = migrate.head()
    found = re.fullmatch(r"pyidem (\S+), revision (\S+)", version["detail"])
    installed, revision = found.groups() if found else (version["detail"], "")
    here = f"this program is pyidem {__version__}, revision {newest}"
    check = {"check_name": "program", "ok": False, "detail": here, "fix": None}
    verdict = compared(installed, __version__)
    if revision == newest and verdict == 0:
        return check | {"ok": True}
    if revision < newest or verdict < 0:
        return check | {"detail": f"an upgrade of the database is missing: {here}", "fix": "pyidem upgrade"}
    return check | {"detail": f"the database is newer: {here}", "fix": f"pip install 'pyidem=={installed}'"}


def _round_trip(connection: Connection) -> Check:
    """Let a key go its way; the rollback leaves nothing of it."""
    key = str(uuid4())
    check: Check = {"check_name": "round_trip", "ok": False, "detail": "", "fix": None}
    try:
        with connection.transaction(force_rollback=True):
            started = call(connection, _calls.reserve(_SCOPE, key))
            if started.token is not None:
                call(connection, _calls.complete(_SCOPE, key, started.token, status=200, body=_ANSWER))
            replayed = call(connection, _calls.reserve(_SCOPE, key))
    except errors.InsufficientPrivilege as error:
        user = connection.info.user
        return check | {
            "detail": describe(error),
            "fix": f"select idem.grant_client('{user}');  -- as the owner of pyidem",
        }
    except psycopg.Error as error:
        return check | {"detail": describe(error), "fix": error.diag.message_hint or "see the checks above"}
    outcomes = [started.outcome, replayed.outcome]
    same = (replayed.status, replayed.body) == (200, _ANSWER)
    return check | {"ok": outcomes == ["started", "replay"] and same, "detail": ", then ".join(outcomes)}


def _write(checks: list[Check]) -> None:
    marks = {True: "ok", False: "FAILS", None: "?"}
    write_table(
        [{"check": check["check_name"], "": marks[check["ok"]], "found": check["detail"]} for check in checks],
        ["check", "", "found"],
    )
    for check in checks:
        if check["fix"] is not None:
            aim = "to put it right" if check["ok"] is False else "what would help"
            typer.echo(f"\n{check['check_name']}: {aim}\n    {check['fix']}")

"""`pyidem resolve`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from psycopg import errors
from rich.progress import track

from pyidem import _calls
from pyidem._types import Response
from pyidem.cli.common import Dsn, Exit, Json, Yes, ask, describe, fail, stderr
from pyidem.cli.connection import Connection, call, connected
from pyidem.cli.keys import Filter, OlderThan, Policy, Scope, State, find
from pyidem.cli.output import write_json, write_table

_COLUMNS = ["scope", "key", "state", "policy", "attempt", "age", "claims", "reason"]
_SHOWN = 5
_WHY = {"moved_on": "it is at another attempt by now", "not_tried": "the connection was lost before"}


class Action(StrEnum):
    """What is decided."""

    COMPLETE = "complete"
    RELEASE = "release"
    RETRY = "retry"


_MEANING = {
    Action.COMPLETE: "the work was done; every attempt with such a key gets {answer}",
    Action.RELEASE: "the work did not happen; the next attempt runs it",
    Action.RETRY: "the next attempt runs the work again, with the same downstream key",
}


@dataclass(frozen=True)
class _Decision:
    """An action with its reason and, where it completes, the answer."""

    action: Action
    reason: str
    response: Response
    force: bool


def resolve(
    scope: Annotated[str | None, typer.Argument(help="Whose key it is.", show_default=False)] = None,
    key: Annotated[str | None, typer.Argument(help="The key.", show_default=False)] = None,
    *,
    dsn: Dsn = "",
    action: Annotated[
        Action,
        typer.Option(
            help="complete: the work was done, and this is the answer. release: it did not happen. "
            "retry: the next attempt may do it again.",
            show_default=False,
        ),
    ],
    reason: Annotated[str, typer.Option(help="How you know. It is kept, with your role.", show_default=False)],
    status: Annotated[int | None, typer.Option(help="Of the answer.", show_default=False)] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", help="Of the answer, as 'Name: value'; may be repeated.", show_default=False),
    ] = None,
    body: Annotated[str | None, typer.Option(help="Of the answer, as text.", show_default=False)] = None,
    body_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A file with the body of the answer.", show_default=False),
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(help="Only if the key is still at this attempt.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Even if somebody may still be at work on the key.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="All lapsed keys.")] = False,
    only_scope: Scope = None,
    policy: Policy = None,
    older_than: OlderThan = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show which keys, and change nothing.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Decide about one key whose outcome is unknown, or about all that match.

    One key: SCOPE KEY. Many: --scope, --policy, --older-than, or --all. What is going to be done is shown
    first, and done after a yes. A key that has moved on meanwhile is left alone.
    """
    which = _which(scope, key, all_, Filter(scope=only_scope, policy=policy, older_than=older_than))
    if which.key is None and (attempt is not None or force):
        raise typer.BadParameter("--attempt and --force are for one key.")
    decision = _Decision(action, reason, _response(action, status, header, body, body_file), force)
    with connected(dsn) as connection:
        rows = find(connection, which)
        if which.key is not None and not rows:
            fail(f"nothing is reserved under key {which.key!r} in scope {which.scope!r}")
        if attempt is not None:
            rows = [{**row, "attempt": attempt} for row in rows]
        if not json:
            _announce(rows, decision)
        if dry_run or not rows:
            if json:
                write_json({"dry_run": dry_run, "keys": [_named(row, "would_be_resolved") for row in rows]})
            return
        ask(f"{action} {_counted(rows)}: {_meaning(decision)}.", yes=yes)
        results = [
            _decide(connection, row, decision, first=row is rows[0])
            for row in track(rows, "Resolving", console=stderr, disable=len(rows) == 1 or not stderr.is_terminal)
        ]
    _report(results, json=json)


def _which(scope: str | None, key: str | None, all_: bool, wanted: Filter) -> Filter:
    """Return which keys are meant; nobody may mean all by leaving something out."""
    if scope is None:
        if not all_ and wanted == Filter():
            raise typer.BadParameter("name a key (SCOPE KEY), or say which: --scope, --policy, --older-than, or --all.")
        return wanted
    if key is None:
        raise typer.BadParameter(f"which key of scope {scope!r}? For all of them: --scope {scope}")
    if all_ or wanted != Filter():
        raise typer.BadParameter("--all and the filters do not go with a key.")
    return Filter(state=State.ALL, scope=scope, key=key)


def _response(
    action: Action, status: int | None, header: list[str] | None, body: str | None, body_file: Path | None
) -> Response:
    if body is not None and body_file is not None:
        raise typer.BadParameter("--body and --body-file are two bodies.")
    given = (status, header, body, body_file) != (None, None, None, None)
    if given and action is not Action.COMPLETE:
        raise typer.BadParameter(f"an answer goes with --action complete, not with {action}.")
    try:
        return Response.of(
            status, body if body_file is None else body_file.read_bytes(), [_pair(each) for each in header or ()]
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _pair(header: str) -> tuple[str, str]:
    name, colon, value = header.partition(":")
    if not colon:
        raise typer.BadParameter(f"a header is written 'Name: value', not {header!r}.")
    return name, value.strip()


def _announce(rows: list[dict[str, Any]], decision: _Decision) -> None:
    if not rows:
        stderr.print("No key is stuck.")
        return
    write_table(rows[:_SHOWN], _COLUMNS)
    if len(rows) > _SHOWN:
        typer.echo(f"... and {len(rows) - _SHOWN} more")
    typer.echo(f"\n{decision.action} {_counted(rows)}: {_meaning(decision)}.")


def _meaning(decision: _Decision) -> str:
    status = "no status" if decision.response.status is None else f"status {decision.response.status}"
    size = "no body" if decision.response.body is None else f"a body of {len(decision.response.body)} bytes"
    return _MEANING[decision.action].format(answer=f"{status} and {size}")


def _counted(rows: list[dict[str, Any]]) -> str:
    return "1 key" if len(rows) == 1 else f"{len(rows)} keys"


def _decide(connection: Connection, row: dict[str, Any], decision: _Decision, *, first: bool) -> dict[str, Any]:
    """Resolve one key, and tell what came of it; the others go on whatever that is."""
    wanted = _calls.resolve(
        row["scope"],
        row["key"],
        decision.action,
        decision.reason,
        attempt=row["attempt"],
        force=decision.force,
        response=decision.response,
    )
    if connection.closed:
        return _named(row, "not_tried")
    try:
        done = call(connection, wanted)
    except psycopg.Error as error:
        if isinstance(error, errors.InsufficientPrivilege) and first:  # as it would be for all
            raise
        return {**_named(row, "refused"), "error": describe(error), "sqlstate": error.sqlstate}
    return _named(row, "resolved" if done else "moved_on")


def _named(row: dict[str, Any], result: str) -> dict[str, Any]:
    return {"scope": row["scope"], "key": row["key"], "attempt": row["attempt"], "result": result}


def _report(results: list[dict[str, Any]], *, json: bool) -> None:
    """Say what was done; end with 3 where some of it was, and with 1 where nothing was."""
    failed = [each for each in results if each["result"] != "resolved"]
    done = len(results) - len(failed)
    if json:
        write_json({"dry_run": False, "resolved": done, "keys": results})
    else:
        typer.echo(f"Resolved {done} of {_counted(results)}." if failed else f"Resolved {_counted(results)}.")
        for each in failed:
            why = each.get("error") or _WHY[each["result"]]
            stderr.print(f"{each['scope']!r} {each['key']!r}: {why}")
    if failed:
        raise typer.Exit(Exit.PARTLY if done else Exit.FAILED)

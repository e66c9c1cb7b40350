"""`pyidem show`."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from pyidem import _calls
from pyidem._types import Reservation
from pyidem.cli.common import Dsn, Json, fail
from pyidem.cli.connection import call, connected
from pyidem.cli.keys import Filter, State, find, retries
from pyidem.cli.output import cell, length, stdout, write_json, write_table

_FACTS = [
    *("scope", "key", "state", "policy", "mode", "attempt", "age", "created_at", "lease_until", "lapsed_at"),
    *(
        "released_at",
        "completed_at",
        "expires_at",
        "status",
        "downstream_key",
        "recovery_point",
        "claims",
        "max_claims",
    ),
    *("claim_after", "reason", "waits_for"),
]


def show(
    scope: Annotated[str, typer.Argument(help="Whose key it is.")],
    key: Annotated[str, typer.Argument(help="The key.")],
    *,
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Show one key: how it stands, what a client gets now, what happened, and what can be done.

    No bodies are shown, and no tokens.
    """
    with connected(dsn) as connection:
        found = find(connection, Filter(state=State.ALL, scope=scope, key=key), 1)
        reservation = call(connection, _calls.lookup(scope, key))
        history = [asdict(event) for event in call(connection, _calls.history(scope, key))]
        if not found and not history:
            fail(f"nothing is known of key {key!r} in scope {scope!r}")
        downstream_key = call(connection, _calls.downstream_key(scope, key))
    row = found[0] if found else {"scope": scope, "key": key, "state": "absent"}
    answer = _answer(row, reservation)
    commands = dict(_commands(row))
    if json:
        write_json(
            {**row, "downstream_key": downstream_key, "client_gets": answer, "history": history, "commands": commands}
        )
        return
    print_ = stdout().print
    facts = {**row, "downstream_key": downstream_key}
    if row.get("completed_at") is None:
        facts["expires_at"] = None  # what is unfinished does not expire
    for name in _FACTS:
        if facts.get(name) is not None:
            print_(f"{name.replace('_', ' '):<15} {cell(facts[name])}")
    print_(f"\nA client that sends this key now {answer}.")
    if history:
        print_("\nWhat happened\n")
        write_table(history, list(history[0]))
    if commands:
        print_("\nWhat can be done\n")
        for what, command in commands.items():
            print_(f"{what}:\n    {command}")


def _answer(row: dict[str, Any], reservation: Reservation) -> str:
    """Say what the next attempt gets, in the words of HTTP."""
    wait = f", and may ask again after {length(reservation.retry_after)}" if reservation.retry_after else ""
    again = f"runs the work as attempt {(reservation.attempt or 0) + 1}"
    if reservation.outcome == "lapsed":
        return (
            f"takes over and {again}, with the same downstream key"
            if retries(row)
            else f"gets 409, outcome unknown{wait}"
        )
    return {
        "absent": "runs the work, as the first attempt",
        "in_progress": f"gets 409, request in progress{wait}",
        "released": again,
        "completed": f"gets the stored answer, status {reservation.status}",
        "expired": "gets 410: the answer is gone",
    }[reservation.outcome]


def _commands(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what an operator can do, with the command to paste."""
    if row["state"] not in ("lapsed", "in_progress"):
        return
    force = " --force" if row["state"] == "in_progress" else ""
    # after --, for a key may begin with a hyphen
    named = f"-- {shlex.quote(row['scope'])} {shlex.quote(row['key'])}"
    common = f"--attempt {row['attempt']}{force} --reason 'WHY'"
    if force:
        yield "Its owner is at work. Where that is known to be dead, go on", f"pyidem show {named}"
    yield (
        "It happened: store the answer that every attempt shall get",
        f"pyidem resolve --action complete --status 201 --body 'BODY' {common} {named}",
    )
    yield "It did not happen: free the key", f"pyidem resolve --action release {common} {named}"
    yield (
        "It may be repeated under the same downstream key: let the next attempt go on",
        f"pyidem resolve --action retry {common} {named}",
    )

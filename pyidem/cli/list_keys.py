"""`pyidem list`."""

from typing import Annotated

import typer

from pyidem.cli.common import Dsn, Json, stderr
from pyidem.cli.connection import connected
from pyidem.cli.keys import Filter, OlderThan, Policy, Scope, State, find
from pyidem.cli.output import write_json, write_table

_COLUMNS = ["scope", "key", "state", "policy", "attempt", "age", "claims", "waits_for", "reason"]
_FINISHED_COLUMNS = ["scope", "key", "state", "policy", "attempt", "age", "status", "completed_at", "expires_at"]


def list_keys(
    *,
    dsn: Dsn = "",
    state: Annotated[State, typer.Option(help="Only keys in this state.")] = State.LAPSED,
    scope: Scope = None,
    policy: Policy = None,
    older_than: OlderThan = None,
    limit: Annotated[int, typer.Option(min=0, help="At most so many, the oldest first; 0 for all.")] = 100,
    json: Json = False,
) -> None:
    """List the keys whose outcome is unknown, or those in another state.

    A lapsed key is one whose owner died or gave up half-way: what it did outside is not known. It waits for a sweeper
    (pyidem sweep), for the next attempt where its policy lets that take over, or for a person (pyidem show, resolve).
    """
    which = Filter(state=state, scope=scope, policy=policy, older_than=older_than)
    with connected(dsn) as connection:
        rows = find(connection, which, limit + 1 if limit else None)
    more = bool(limit) and len(rows) > limit
    shown = rows[:limit] if limit else rows
    if json:
        write_json(shown)
    elif shown:
        finished = state in (State.COMPLETED, State.EXPIRED)
        write_table(shown, _FINISHED_COLUMNS if finished else _COLUMNS)
    else:
        stderr.print("No such keys." if state is not State.LAPSED else "No key is stuck.")
    if more:
        stderr.print(f"These are the first {limit} of more: give --limit 0 for all.")

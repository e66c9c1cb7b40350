"""Keys as operators choose and see them: the filters, the query, and what each one waits for."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from pyidem.cli.common import parse_duration
from pyidem.cli.connection import Connection, read


class State(StrEnum):
    """A state of a key, under the name that `idem.lookup` has for it."""

    LAPSED = "lapsed"
    IN_PROGRESS = "in_progress"
    RELEASED = "released"
    COMPLETED = "completed"
    EXPIRED = "expired"
    ALL = "all"


Scope = Annotated[str | None, typer.Option("--scope", help="Only keys of this scope.", show_default=False)]
Policy = Annotated[str | None, typer.Option("--policy", help="Only keys under this policy.", show_default=False)]
OlderThan = Annotated[
    timedelta | None,
    typer.Option(
        "--older-than",
        parser=parse_duration,
        metavar="DURATION",
        help="Only keys that were first reserved longer ago: 15m, 2h, 1d.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Filter:
    """Which keys are meant."""

    state: State = State.LAPSED
    scope: str | None = None
    key: str | None = None
    policy: str | None = None
    older_than: timedelta | None = None

    def conditions(self) -> list[str]:
        """Return what a row of the query has to fulfil."""
        unfinished = self.state not in (State.COMPLETED, State.EXPIRED, State.ALL)
        wanted = {
            "k.outcome = %(state)s": self.state is not State.ALL,
            "k.unfinished": unfinished,  # reads no finished key
            "k.scope = %(scope)s": self.scope is not None,
            "k.key = %(key)s": self.key is not None,
            "k.policy = %(policy)s": self.policy is not None,
            "k.created_at < clock_timestamp() - %(older_than)s::interval": self.older_than is not None,
        }
        return [condition for condition, given in wanted.items() if given]


_QUERY = """
select k.scope, k.key, k.outcome as state, k.policy, k.mode, k.attempt, k.created_at, k.lease_until, k.lapsed_at,
    k.released_at, k.completed_at, k.expires_at, k.status, k.recovery_point, k.claims, k.max_claims, k.claim_after,
    k.reason, clock_timestamp() - k.created_at as age, k.on_lapse, k.max_attempts
from idem.keys as k
where {}
order by k.created_at, k.scope, k.key
limit %(limit)s
"""


def find(connection: Connection, which: Filter, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the keys that are meant, the oldest first."""
    query = _QUERY.format(" and ".join(which.conditions()) or "true")
    rows = read(connection, query, {**vars(which), "state": str(which.state), "limit": limit})
    return [{**row, "waits_for": waits_for(row)} for row in rows]


def waits_for(row: dict[str, Any]) -> str | None:
    """Tell who can move an unfinished key on."""
    match row["state"]:
        case "in_progress":
            return "its owner"
        case "released":
            return "the next attempt"
        case "lapsed":
            if row["max_claims"] is not None and (row["claims"] or 0) >= row["max_claims"]:
                return "a person"
            return "a sweeper, or the next attempt" if retries(row) else "a sweeper, or a person"
        case _:
            return None


def retries(row: dict[str, Any]) -> bool:
    """Tell whether the next attempt may take a lapsed key over."""
    left = row["max_attempts"] is None or row["attempt"] < row["max_attempts"]
    return row["on_lapse"] == "retry" and row["mode"] == "leased" and left

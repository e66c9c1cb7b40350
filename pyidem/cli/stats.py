"""`pyidem stats`."""

from pyidem.cli.common import Dsn, Json, stderr
from pyidem.cli.connection import connected, read
from pyidem.cli.output import write_json, write_table

_QUERY = "select s.policy, s.state, s.keys, s.estimated, s.oldest, s.bytes from idem.stats() as s"


def stats(*, dsn: Dsn = "", json: Json = False) -> None:
    """Count the keys, by policy and state.

    Unfinished ones are counted; finished ones, and what all of them take in bytes, are the planner's estimates.
    """
    with connected(dsn, right="grant_monitor") as connection:
        rows = read(connection, _QUERY)
    if json:
        write_json(rows)
    elif rows:
        write_table(rows, list(rows[0]))
    else:
        stderr.print("No keys, as far as the planner knows.")

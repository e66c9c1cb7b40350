"""One number from the database."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import psycopg


def count(connection: psycopg.Connection, query: LiteralString, values: Sequence[Any] | Mapping[str, Any] = ()) -> int:
    """Return the number that is the whole answer of a query."""
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return int(row[0])

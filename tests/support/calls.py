"""The SQL calls as tests make them: plain psycopg, no client library in between."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

SCOPE = "shop"


def reserve(connection: psycopg.Connection, key: str, *, scope: str = SCOPE, **arguments: Any) -> Any:
    """The row that idem.reserve answers with."""
    return _call(connection, "reserve", scope=scope, key=key, **arguments)


def lookup(connection: psycopg.Connection, key: str, *, scope: str = SCOPE) -> Any:
    """The row that idem.lookup answers with."""
    return _call(connection, "lookup", scope=scope, key=key)


def complete(connection: psycopg.Connection, key: str, token: UUID, *, scope: str = SCOPE, **answer: Any) -> bool:
    """What idem.complete returns."""
    return bool(_call(connection, "complete", scope=scope, key=key, token=token, **answer)[0])


def owner_call(connection: psycopg.Connection, name: str, key: str, token: UUID, **arguments: Any) -> Any:
    """What release, defer, extend or checkpoint returns."""
    return _call(connection, name, scope=SCOPE, key=key, token=token, **arguments)[0]


def claim_lapsed(connection: psycopg.Connection, **arguments: Any) -> list[Any]:
    """The rows of idem.claim_lapsed."""
    cursor = connection.cursor(row_factory=namedtuple_row)
    named = ", ".join(f"{argument} => %({argument})s" for argument in arguments)
    return list(cursor.execute(f"select * from idem.claim_lapsed({named})", arguments).fetchall())


def resolve(connection: psycopg.Connection, key: str, action: str, **arguments: Any) -> bool:
    """What idem.resolve returns."""
    fixed = {"scope": SCOPE, "key": key, "action": action, "reason": "asked the provider"}
    return bool(_call(connection, "resolve", **fixed | arguments)[0])


def run(connection: psycopg.Connection, key: str, handler: str, *, scope: str = SCOPE, **arguments: Any) -> Any:
    """The row that idem.run answers with."""
    fixed = {"fingerprint": None, "args": Jsonb({})}
    return _call(connection, "run", scope=scope, key=key, handler=handler, **fixed | arguments)


def once(connection: psycopg.Connection, key: str, *, scope: str = SCOPE, **arguments: Any) -> str:
    """What idem.once returns."""
    return str(_call(connection, "once", scope=scope, key=key, **arguments)[0])


def once_many(connection: psycopg.Connection, keys: list[str], *, scope: str = SCOPE) -> list[tuple[str, str]]:
    """Key and outcome of each row of idem.once_many, in the order of its ordinals."""
    return connection.execute(
        "select key, outcome from idem.once_many(%s, %s) order by ordinal", [scope, keys]
    ).fetchall()


def once_undo(connection: psycopg.Connection, keys: list[str], *, scope: str = SCOPE) -> int:
    """What idem.once_undo returns."""
    return int(_call(connection, "once_undo", scope=scope, keys=keys)[0])


def sqlstate_of(connection: psycopg.Connection, name: str, **arguments: Any) -> str | None:
    """The SQLSTATE that a call raises in a transaction of its own, or None if it returns."""
    try:
        with connection.transaction():
            _call(connection, name, **arguments)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def stored(connection: psycopg.Connection, key: str, *, scope: str = SCOPE) -> Any:
    """The row of the table itself, or None."""
    cursor = connection.cursor(row_factory=namedtuple_row)
    return cursor.execute(
        "select * from idem_private.reservation where scope = %s and key = %s", [scope, key]
    ).fetchone()


def set_policy(connection: psycopg.Connection, name: str, **columns: Any) -> None:
    """Create a policy, or change it."""
    names = ", ".join(columns)
    values = ", ".join(f"%({column})s" for column in columns)
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
    connection.execute(
        f"insert into idem.policies (name, {names}) values (%(name)s, {values})"
        f" on conflict (name) do update set {changes}",
        {"name": name, **columns},
    )


def _call(connection: psycopg.Connection, name: str, **arguments: Any) -> Any:
    cursor = connection.cursor(row_factory=namedtuple_row)
    named = ", ".join(f"{argument} => %({argument})s" for argument in arguments)
    row = cursor.execute(f"select * from idem.{name}({named})", arguments).fetchone()
    assert row is not None
    return row


def answers_of_every_call(connection: psycopg.Connection, collate: str = "") -> list[tuple[str, object]]:
    """What each statement of every_call.sql answers, in a transaction that is rolled back.

    ``collate`` is put after every text.
    """
    found: list[tuple[str, object]] = []
    for statement in Path(__file__).with_name("every_call.sql").read_text().split(";\n"):
        if statement:
            cursor = connection.execute(re.sub(r"~(?=[,)\]])", collate, statement).encode())
            found.append((statement, cursor.fetchall() if cursor.description else cursor.rowcount))
    connection.rollback()
    return found

"""What the examples take for granted, and how they are run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import psycopg

from tests.docs.blocks import fences
from tests.support.database import Database


class Provider:
    """A payment provider that honours idempotency keys, and can lose its answer."""

    def __init__(self) -> None:
        self.made: dict[str, SimpleNamespace] = {}
        self.calls = 0
        self.fails_after_the_work = False

    def refund(self, charge: str, *, idempotency_key: str) -> SimpleNamespace:
        UUID(idempotency_key)
        self.calls += 1
        made = self.made.setdefault(idempotency_key, SimpleNamespace(id=f"re_{len(self.made)}_{charge}"))
        if self.fails_after_the_work:
            raise TimeoutError
        return made


def insert_order(connection: psycopg.Connection, body: bytes) -> SimpleNamespace:
    row = connection.execute(
        "insert into orders (amount) values (%s) returning id", [body.decode().partition("=")[2]]
    ).fetchone()
    assert row is not None
    return SimpleNamespace(id=row[0])


def insert_refund(connection: psycopg.Connection, made: SimpleNamespace) -> None:
    connection.execute("insert into refunds (id) values (%s)", [made.id])


def defined_by(document: Path, shop: Database, **given: Any) -> dict[str, Any]:
    """Run the Python blocks of a document in order, with the names that it takes for granted.

    A block that bears the name of a file is not part of that: see `files_in`.
    """
    names = {"dsn": shop.dsn_of("app"), "provider": Provider()} | given
    for block in fences(document, "python"):
        if not block.options:
            exec(compile(block.text, block.place, "exec"), names)
    return names


def files_in(document: Path) -> dict[str, str]:
    """Return the Python blocks of a document that bear the name of a file, by that name."""
    return {block.options[0]: block.text for block in fences(document, "python") if block.options}


def count(shop: Database, table: str) -> int:
    with psycopg.connect(shop.dsn) as connection:
        row = connection.execute(f"select count(*) from {table}".encode()).fetchone()
        assert row is not None
        return int(row[0])

"""What the tests of claims and sweepers share: lapsed keys, and resolvers for either flavour."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb
from sqlalchemy import text

from pyidem import AsyncSweeper, Sweeper
from tests.client.flavours import FLAVOURS, Client

SHARED = [name for name in FLAVOURS if not name.endswith("connection")]

Decide = Callable[[Any], Any]
"""Takes op, and says what the resolver is to do: "complete", "release", a timedelta to defer by, or None."""


def lapse(
    observer: psycopg.Connection, scope: str, key: str = "k", *, policy: str = "default", state: Any = None
) -> UUID:
    """Leave a lapsed key behind, and return its owner's token."""
    token = uuid4()
    reserve = "select idem.reserve(%s, %s, mode => 'leased', token => %s, policy => %s, state => %s)"
    observer.execute(reserve, [scope, key, token, policy, None if state is None else Jsonb(state)])
    observer.execute("select idem.defer(%s, %s, %s, reason => 'gone')", [scope, key, token])
    return token


def resolver_of(client: Client, decide: Decide) -> Any:
    """Return a resolver in the flavour of the client, which does what `decide` says."""

    def resolve(op: Any) -> None:
        what = decide(op)
        if what == "complete":
            with op.transaction() as handle:
                client.insert(handle, f"{op.scope}/{op.key}")
                op.complete(200)
        elif what == "release":
            op.release()
        elif isinstance(what, timedelta):
            op.defer(what, "asked in vain")

    async def resolve_async(op: Any) -> None:
        what = decide(op)
        if hasattr(what, "__await__"):
            what = await what
        if what == "complete":
            async with op.transaction() as handle:
                order = f"insert into orders (name) values ('{op.scope}/{op.key}')"
                await handle.execute(order if isinstance(handle, psycopg.AsyncConnection) else text(order))
                op.complete(200)
        elif what == "release":
            await op.release()
        elif isinstance(what, timedelta):
            await op.defer(what, "asked in vain")

    return resolve_async if client.asynchronous else resolve


def sweeper_of(client: Client, decide: Decide, **options: Any) -> Any:
    """Return a sweeper in the flavour of the client."""
    kind = AsyncSweeper if client.asynchronous else Sweeper
    return kind(client.idem, resolver_of(client, decide), **options)


def key_of(observer: psycopg.Connection, scope: str, key: str = "k") -> dict[str, Any]:
    """Return what operators see of a key."""
    cursor = observer.cursor(row_factory=psycopg.rows.dict_row)
    row = cursor.execute("select * from idem.keys where scope = %s and key = %s", [scope, key]).fetchone()
    assert row is not None, f"there is no key {key}"
    return row

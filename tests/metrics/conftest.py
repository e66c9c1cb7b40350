"""A database in which something of everything is going on, and the role that watches it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest

from tests.support.database import Database, advance_clock


@dataclass(frozen=True)
class Watched:
    """A database and a role that has idem.grant_monitor there."""

    database: Database
    monitor: str

    @property
    def dsn(self) -> str:
        """The connection string of that role."""
        return self.database.dsn_of(self.monitor)


@pytest.fixture
def watched(db: Database) -> Watched:
    """A database with nothing in it."""
    role = db.create_role("watch")
    with psycopg.connect(db.dsn) as admin:
        admin.execute("select idem.grant_monitor(%s)", [role])
    return Watched(db, role)


@pytest.fixture
def loaded(watched: Watched) -> Watched:
    """One with keys of every state, an old lapse, a key that was given up, and a purge that is behind.

    `default` has 2 keys in progress, 1 released and 1 that lapsed an hour ago. `bank`, under hold, has 1 that no
    resolver will try again. `provider`, under retry, has 1 that may be taken over, and 1 whose attempts are used up.
    900 messages are finished; so are 5 keys of `short`, which expired 29 hours ago, 9 hours after the last purge.
    """
    watched.database.enable_testing()
    with psycopg.connect(watched.database.dsn) as admin:
        admin.execute(
            "insert into idem.policies (name, on_lapse, max_claims, max_attempts, ttl) values"
            " ('bank', 'hold', 1, null, '1 day'), ('provider', 'retry', 10, 2, '1 day'),"
            " ('short', 'hold', 10, null, '1 hour')"
        )
        admin.execute("update idem.policies set max_batch = 1000 where name = 'messages'")
    with at(watched, timedelta(hours=-40)) as past:
        past.execute("select idem.once('mail', 'first', 'short')")
    with at(watched, timedelta(hours=-38)) as past:
        past.execute("select idem.purge()")
    with at(watched, timedelta(hours=-30)) as past:
        past.execute("select from idem.once_many('mail', array['a', 'b', 'c', 'd', 'e'], 'short')")
    with at(watched, timedelta(hours=-1)) as past:
        for key, policy in (
            ("old", "default"),
            ("given-up", "bank"),
            ("again", "provider"),
            ("used-up", "provider"),
        ):
            reserve(past, key, policy, "1 second")
    with at(watched, timedelta(minutes=-30)) as past:
        past.execute("select from idem.claim_lapsed(1, '1 second', 'bank')")
        reserve(past, "used-up", "provider", "1 second")
    with at(watched, timedelta()) as now:
        for key in ("open-1", "open-2", "back"):
            reserve(now, key, "default", "1 hour")
        token = now.execute("select token from tokens where key = 'back'").fetchone()
        now.execute("select idem.checkpoint('shop', 'back', %s, 'half')", token)
        now.execute("select idem.release('shop', 'back', %s)", token)
        now.execute("select from idem.once_many('mail', array(select 'm' || n from generate_series(1, 900) as n))")
    with psycopg.connect(watched.database.dsn, autocommit=True) as admin:
        admin.execute("analyze idem_private.reservation")
    return watched


@contextmanager
def at(watched: Watched, offset: timedelta) -> Iterator[psycopg.Connection]:
    """Connect as somebody whose clock is that much ahead."""
    with psycopg.connect(watched.database.dsn, autocommit=True) as connection:
        connection.execute("create temp table tokens (key text, token uuid)")
        advance_clock(connection, offset)
        yield connection


def reserve(connection: psycopg.Connection, key: str, policy: str, lease: str) -> None:
    """Reserve a leased key, and keep its token in the table of that name."""
    row = connection.execute(
        "select outcome, token from idem.reserve('shop', %s, mode => 'leased', lease => %s, policy => %s)",
        [key, lease, policy],
    ).fetchone()
    assert row is not None
    assert row[0] == "started"
    connection.execute("insert into tokens values (%s, %s)", [key, row[1]])

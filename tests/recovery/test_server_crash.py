"""What a session with synchronous_commit off has committed, if other systems act on it, outlives a crash."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from pyidem.embedded import Cluster
from tests.support.calls import claim_lapsed, complete, lookup, reserve, resolve, set_policy
from tests.support.database import OWNER, ROOT, Database, new_database
from tests.support.server import Server


@pytest.fixture(scope="module")
def crashing(installation: Server) -> Iterator[Cluster]:
    """A server of its own, whose WAL writer leaves to the commits what has to be on disk."""
    settings = {"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}
    with Cluster(installation.bindir, settings=settings) as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(OWNER), cluster.password))
        yield cluster


@pytest.fixture
def crashing_db(crashing: Cluster) -> Iterator[Database]:
    with new_database(crashing) as database:
        database.psql(ROOT / "sql" / "install.sql", user=OWNER)
        database.enable_testing()
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            set_policy(connection, "again", on_lapse="retry")
        yield database


def reserved(connection: psycopg.Connection) -> tuple[str, int]:
    reserve(connection, "k", mode="leased")
    return ("in_progress", 1)


def taken_over(connection: psycopg.Connection) -> tuple[str, int]:
    reserve(connection, "k", mode="leased", policy="again")
    connection.commit()
    connection.execute("set idem.clock_offset = '2 minutes'")
    assert reserve(connection, "k", mode="leased").attempt == 2
    return ("in_progress", 2)


def claimed(connection: psycopg.Connection) -> tuple[str, int]:
    reserve(connection, "k", mode="leased")
    connection.commit()
    connection.execute("set idem.clock_offset = '2 minutes'")
    assert len(claim_lapsed(connection)) == 1
    return ("in_progress", 1)


def completed(connection: psycopg.Connection) -> tuple[str, int]:
    token = reserve(connection, "k", mode="leased").token
    connection.commit()
    complete(connection, "k", token, status=201)
    return ("completed", 1)


def resolved(connection: psycopg.Connection) -> tuple[str, int]:
    reserve(connection, "k", mode="leased")
    connection.commit()
    resolve(connection, "k", "retry", force=True)
    return ("released", 1)


@pytest.mark.parametrize("call", [reserved, taken_over, claimed, completed, resolved])
def test_what_was_committed_is_there_after_a_crash(
    crashing: Cluster, crashing_db: Database, call: Callable[[psycopg.Connection], tuple[str, int]]
) -> None:
    connection = crashing_db.connect()
    assert connection.execute("show synchronous_commit").fetchone() == ("off",)
    left = call(connection)
    at = connection.execute("select current_setting('idem.clock_offset', true)").fetchone()
    connection.commit()
    crashing.restart("immediate")
    with psycopg.connect(crashing_db.dsn, autocommit=True) as after:
        after.execute("select set_config('idem.clock_offset', %s, false)", at)
        found = lookup(after, "k")
        assert (found.outcome, found.attempt) == left

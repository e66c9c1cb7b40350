"""Under load nothing grows and nothing is left: no memory, no connection, no lock, no open transaction."""

import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pyidem.embedded import Cluster
from tests.history.check import judge
from tests.history.storm import APPLICATION, SETTINGS, Clients, figures, remains, stage
from tests.support.database import ROOT, Database
from tests.support.server import Server
from tests.support.soak import MINUTES
from tests.support.waiting import wait_until

SECONDS = MINUTES * 60 or 6
CLIENTS = 4
START_SECONDS = 5
# a client and a session each have one connection, and a client has a pool of two
MOST_SESSIONS = 3 * CLIENTS
# what caches of one more plan, or one more shape of an answer, may take once all has been done
LEEWAY_KB = 4096
LONGEST_TRANSACTION_S = 30


@pytest.fixture
def loaded(installation: Server) -> Iterator[Database]:
    with Cluster(installation.bindir, settings=SETTINGS) as cluster, stage(cluster, ROOT / "sql") as database:
        yield database


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_load_leaves_nothing_behind_and_lets_nothing_grow(loaded: Database, tmp_path: Path) -> None:
    crowd = Clients(loaded.dsn_of(APPLICATION), tmp_path, CLIENTS, SECONDS + START_SECONDS, "load")
    try:
        wait_until(lambda: len(memory_of_sessions(loaded)) >= CLIENTS, "the clients to be at work")
        time.sleep(SECONDS / 2)
        sessions, clients = memory_of_sessions(loaded), memory_of(crowd.pids)
        time.sleep(SECONDS / 2)
        assert len(memory_of_sessions(loaded)) <= MOST_SESSIONS
        assert not forgotten_transactions(loaded)
        grown_sessions, grown_clients = (
            grown(sessions, memory_of_sessions(loaded)),
            grown(clients, memory_of(crowd.pids)),
        )
        crowd.finish()
    finally:
        crowd.stop()
    history = crowd.history()
    print(figures(history), "sessions grew by", grown_sessions, "KB, clients by", grown_clients, "KB")

    assert statistics.median(grown_sessions) < LEEWAY_KB
    assert statistics.median(grown_clients) < LEEWAY_KB
    with psycopg.connect(loaded.dsn, autocommit=True) as admin:
        wait_until(lambda: not sessions_of(admin), "every connection to be closed")
        assert admin.execute("select * from pg_locks where pid <> pg_backend_pid() and locktype <> 'virtualxid'"
                             " and pid in (select pid from pg_stat_activity where backend_type = 'client backend')"
                             ).fetchall() == []  # fmt: skip
        assert admin.execute("select * from pg_prepared_xacts").fetchall() == []
    assert judge(history, remains(loaded)) == []


def sessions_of(admin: psycopg.Connection) -> list[int]:
    return [
        pid for (pid,) in admin.execute("select pid from pg_stat_activity where usename = %s", [APPLICATION]).fetchall()
    ]


def memory_of_sessions(database: Database) -> dict[int, int]:
    with psycopg.connect(database.dsn, autocommit=True) as admin:
        return memory_of(sessions_of(admin))


def forgotten_transactions(database: Database) -> list[tuple[object, ...]]:
    with psycopg.connect(database.dsn, autocommit=True) as admin:
        return admin.execute(
            "select query from pg_stat_activity"
            " where usename = %s and clock_timestamp() - xact_start > make_interval(secs => %s)",
            [APPLICATION, LONGEST_TRANSACTION_S],
        ).fetchall()


def memory_of(pids: list[int]) -> dict[int, int]:
    """What each process has for itself alone, in KB."""
    found = {}
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except FileNotFoundError:  # it has ended
            continue
        if size := re.search(r"RssAnon:\s+(\d+) kB", status):
            found[pid] = int(size[1])
    return found


def grown(before: dict[int, int], after: dict[int, int]) -> list[int]:
    """By how much those have grown that were there both times; one at least was."""
    return [after[pid] - size for pid, size in before.items() if pid in after] or [0]

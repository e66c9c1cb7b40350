"""Several migrators at once: one does the work, the others find it done, directly and behind PgBouncer."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from pyidem import migrate
from tests.migrations.next_version import SECOND, Checkout
from tests.migrations.support import Catalog, catalog, cli_environment, owner_dsn
from tests.support.database import Database
from tests.support.pgbouncer import pgbouncer
from tests.support.waiting import wait_until

Start = Callable[[str], subprocess.Popen[str]]


def psql(database: Database, script: Path) -> Start:
    """Start psql with a file, on a connection string."""
    return lambda dsn: started(
        database.cluster.bindir / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-f", script
    )


def online(dsn: str) -> subprocess.Popen[str]:
    return started(sys.executable, "-m", "pyidem", "upgrade", "--dsn", dsn)


def started(*command: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env=cli_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def all_at_once(database: Database, dsn: str, starts: list[Start], *, waiting: int) -> list[tuple[int, str]]:
    """Start programs and let them go together when so many of them wait; return exit codes and output, sorted."""
    with psycopg.connect(database.dsn) as holder:
        holder.execute("select pg_advisory_xact_lock(hashtextextended('pyidem.migrate', 0))")
        programs = [start(dsn) for start in starts]
        wait_until(lambda: waiting_for(holder) == waiting, f"{waiting} migrators to wait for the lock", timeout=120)
    outputs = [program.communicate()[0] for program in programs]
    return sorted((program.returncode, output) for program, output in zip(programs, outputs, strict=True))


def waiting_for(holder: psycopg.Connection) -> int:
    row = holder.execute(
        "select count(*) from pg_locks as l join pg_database as d on d.oid = l.database"
        " where d.datname = current_database() and l.locktype = 'advisory' and not l.granted"
    ).fetchone()
    assert row is not None
    return int(row[0])


def found_done(ended: tuple[int, str]) -> bool:
    """Whether a program that came too late says that pyidem is installed, and not another thing."""
    code, output = ended
    if code == 0:
        return output == f"Nothing to do: at {migrate.head()}.\n"
    return 'schema "idem" already exists' in output or "pyidem is installed already" in output


@pytest.mark.parametrize("pooled", [False, True], ids=["directly", "behind PgBouncer"])
def test_of_twenty_installations_in_every_way_one_does_it(
    pooled: bool, empty_db: Database, db: Database, tmp_path: Path
) -> None:
    offline = tmp_path / "offline.sql"
    offline.write_text(migrate.sql())
    ways = [psql(empty_db, migrate.resource("sql") / "install.sql"), psql(empty_db, offline), online, online]
    starts = ways * 5
    if pooled:
        with pgbouncer(owner_dsn(empty_db), tmp_path, connections=5) as dsn:
            ended = all_at_once(empty_db, dsn, starts, waiting=5)
    else:
        ended = all_at_once(empty_db, owner_dsn(empty_db), starts, waiting=20)

    late = [one for one in ended if found_done(one)]
    assert len(late) == 19, ended
    [(code, output)] = [one for one in ended if one not in late]
    assert code == 0, output
    assert catalog(empty_db) == catalog(db)


@pytest.mark.parametrize("pooled", [False, True], ids=["directly", "behind PgBouncer"])
def test_of_two_pods_that_upgrade_at_once_one_does_it(
    pooled: bool, later: Checkout, db: Database, tmp_path: Path
) -> None:
    starts: list[Start] = [lambda dsn: later.start("upgrade", "--dsn", dsn)] * 2
    if pooled:
        with pgbouncer(owner_dsn(db), tmp_path, connections=2) as dsn:
            ended = all_at_once(db, dsn, starts, waiting=2)
    else:
        ended = all_at_once(db, owner_dsn(db), starts, waiting=2)

    assert ended == [(0, f"Nothing to do: at {SECOND}.\n"), (0, f"Upgraded to {SECOND}.\n")]
    assert later.pyidem("current", "--dsn", owner_dsn(db)).stdout == f"{SECOND} (head)\n"


def test_behind_pgbouncer_a_database_goes_up_and_down(later: Checkout, db: Database, tmp_path: Path) -> None:
    before: Catalog = catalog(db)
    with pgbouncer(owner_dsn(db), tmp_path, connections=1) as dsn:
        for command in (["upgrade"], ["current"], ["downgrade", "-1", "--yes"]):
            done = later.pyidem(*command, "--dsn", dsn)
            assert done.returncode == 0, done.stderr

    assert catalog(db) == before

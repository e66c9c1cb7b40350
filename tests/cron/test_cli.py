"""`pyidem schedule` beside the real pg_cron."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.migrations.support import Done, cli_environment
from tests.support.database import OWNER, Database

pytestmark = pytest.mark.parts

PYIDEM = str(Path(sys.executable).with_name("pyidem"))


def pyidem(database: Database, *arguments: str) -> Done:
    environment = cli_environment() | database.environment | {"PGUSER": OWNER}
    done = subprocess.run([PYIDEM, *arguments], check=False, capture_output=True, text=True, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def jobs(admin: psycopg.Connection) -> list[tuple[object, ...]]:
    return admin.execute("select jobname, schedule, command, database from cron.job order by jobid").fetchall()


def test_it_schedules_changes_and_removes_the_job(cron_db: Database, admin: psycopg.Connection) -> None:
    assert pyidem(cron_db, "schedule").stdout.startswith("Scheduled: job ")
    assert pyidem(cron_db, "schedule", "--when", "*/5 * * * *", "--max-time", "2m", "--max-rows", "500").returncode == 0
    assert jobs(admin) == [
        ("pyidem purge postgres", "*/5 * * * *", "call idem.purge_all(500, '120 seconds')", "postgres")
    ]
    assert pyidem(cron_db, "schedule", "--remove") == Done(0, "Removed the job.\n", "")
    assert pyidem(cron_db, "schedule", "--remove") == Done(0, "Nothing to do: there is no job.\n", "")
    assert jobs(admin) == []


def test_without_pg_cron_it_prints_what_to_paste(db: Database, admin: psycopg.Connection) -> None:
    done = pyidem(db, "schedule")
    assert done.returncode == 1
    assert f"cron.schedule_in_database('pyidem purge {db.name}'" in done.stderr
    assert jobs(admin) == []


def test_with_the_database_of_pg_cron_it_schedules_from_there(
    db: Database, cron_db: Database, admin: psycopg.Connection
) -> None:
    for _ in range(2):
        done = pyidem(db, "schedule", "--cron-dsn", cron_db.dsn)
        assert (done.returncode, done.stderr) == (0, "")
    (first, second) = jobs(admin)
    assert first == (f"pyidem purge {db.name}", "* * * * *", "call idem.purge_all(10000, '45 seconds')", db.name)
    assert (second[0], second[1], second[3]) == (f"pyidem purge {db.name}, old runs", "0 * * * *", "postgres")


def test_a_wrong_database_of_pg_cron_is_one_message(db: Database) -> None:
    done = pyidem(db, "schedule", "--cron-dsn", db.dsn)
    assert (done.returncode, "in the database of --cron-dsn" in done.stderr) == (1, True)


def test_what_the_database_refuses_is_one_message(cron_db: Database, admin: psycopg.Connection) -> None:
    done = pyidem(cron_db, "schedule", "--when", "30 seconds")
    assert (done.returncode, "knows no schedules in seconds" in done.stderr) == (1, True)
    assert jobs(admin) == []

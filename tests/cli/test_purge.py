"""`pyidem purge`: once, and as a service where there is no pg_cron."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.migrations.support import Done, cli_environment
from tests.support.calls import once, set_policy
from tests.support.database import OWNER, Database
from tests.support.waiting import wait_until

PYIDEM = str(Path(sys.executable).with_name("pyidem"))


def pyidem(database: Database, *arguments: str, user: str = OWNER) -> Done:
    done = subprocess.run(
        [PYIDEM, *arguments], check=False, capture_output=True, text=True, env=environment(database, user)
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def environment(database: Database, user: str = OWNER) -> dict[str, str]:
    return cli_environment() | database.environment | {"PGUSER": user}


@contextmanager
def running(database: Database, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [PYIDEM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(database) | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def admin(db: Database) -> psycopg.Connection:
    connection = db.connect(autocommit=True)
    set_policy(connection, "brief", ttl="1 millisecond", lease="1 microsecond", min_retention="1 millisecond")
    return connection


def expire(admin: psycopg.Connection, *keys: str) -> None:
    """Store keys that expire at once."""
    for key in keys:
        once(admin, key, policy="brief")
    admin.execute("select pg_sleep(0.002)")


def count(admin: psycopg.Connection) -> int:
    row = admin.execute("select count(*) from idem.keys").fetchone()
    assert row is not None
    return int(row[0])


def test_it_removes_what_has_expired_and_says_how_much(db: Database, admin: psycopg.Connection) -> None:
    expire(admin, "a", "b", "c")
    once(admin, "kept")

    assert pyidem(db, "purge", "--max-rows", "2") == Done(0, "Removed 3 keys.\n", "")
    assert count(admin) == 1
    assert pyidem(db, "purge") == Done(0, "Removed 0 keys.\n", "")


def test_for_programs_it_prints_json(db: Database, admin: psycopg.Connection) -> None:
    expire(admin, "a")
    assert json.loads(pyidem(db, "purge", "--json").stdout) == {"removed": 1, "caught_up": True}


def test_it_says_what_it_has_left_for_the_next_run(db: Database, admin: psycopg.Connection) -> None:
    expire(admin, "a", "b")
    assert pyidem(db, "purge", "--max-rows", "1", "--max-time", "1ms").stdout == "Removed 1 key; more have expired.\n"


def test_an_operator_may_purge_and_a_client_is_told_what_to_ask_for(db: Database, admin: psycopg.Connection) -> None:
    operator, client = db.create_role("operator"), db.create_role("client")
    admin.execute("select idem.grant_operator(%s), idem.grant_client(%s)", [operator, client])
    expire(admin, "a")

    refused = pyidem(db, "purge", user=client)
    assert (refused.returncode, f"idem.grant_operator('{client}')" in refused.stderr) == (1, True)
    assert pyidem(db, "purge", user=operator).stdout == "Removed 1 key.\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_as_a_service_it_goes_on_until_a_signal(number: int, db: Database, admin: psycopg.Connection) -> None:
    with running(db, "purge", "--every", "50ms") as process:
        for key in ("a", "b"):
            expire(admin, key)
            wait_until(lambda: count(admin) == 0, f"{key} to be purged")
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stderr) == (0, "")
    assert stdout.count("Removed 1 key.\n") == 2


def test_a_signal_ends_a_run_that_is_under_way(db: Database, admin: psycopg.Connection) -> None:
    expire(admin, "a")
    admin.execute(
        "create function public.slow() returns trigger language plpgsql as"
        " $$begin perform pg_sleep(60); return null; end$$"
    )
    admin.execute(
        "create trigger theirs after delete on idem_private.reservation"
        " for each statement execute function public.slow()"
    )
    with running(db, "purge", "--every", "60") as process:
        at_work = "select from pg_stat_activity where application_name = 'pyidem' and wait_event = 'PgSleep'"
        wait_until(lambda: bool(admin.execute(at_work).fetchall()), "the purge to be at work")
        process.terminate()
        stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout, stderr) == (0, "", "")
    assert count(admin) == 1


def test_a_service_outlives_a_lost_connection(db: Database, admin: psycopg.Connection) -> None:
    expire(admin, "a")
    with running(db, "purge", "--every", "50ms") as process:
        wait_until(lambda: count(admin) == 0, "the first run")
        admin.execute(f"alter database {db.name} connection limit 0".encode())
        role = "alter role {} {}"
        admin.execute(role.format(OWNER, "nologin").encode())
        assert process.stderr is not None
        assert "cannot connect" in process.stderr.readline()
        admin.execute(role.format(OWNER, "login").encode())
        admin.execute(f"alter database {db.name} connection limit -1".encode())
        expire(admin, "b")
        wait_until(lambda: count(admin) == 0, "a later run")
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_service_that_cannot_begin_ends_at_once(empty_db: Database) -> None:
    done = pyidem(empty_db, "purge", "--every", "60")
    assert (done.returncode, "pyidem is not installed" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    "wrong", [("--every", "0"), ("--every", "60", "--max-time", "60"), ("--every", "soon"), ("--max-rows", "0")]
)
def test_what_makes_no_sense_is_wrong_usage(wrong: tuple[str, ...], db: Database) -> None:
    assert pyidem(db, "purge", *wrong).returncode == 2

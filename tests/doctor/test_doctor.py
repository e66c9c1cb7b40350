"""`pyidem doctor` on databases that are well and that are not: it names the cause, and the exit code says it."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from pyidem import __version__, migrate
from pyidem.cli.doctor import program
from pyidem.embedded import Cluster
from tests.cli.support import pyidem, stick
from tests.migrations.support import Done
from tests.support.database import OWNER, ROOT, Database
from tests.support.waiting import wait_until


@pytest.fixture
def safe_server(server: Cluster) -> Iterator[None]:
    """Let the throwaway server be as careful as others are."""
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute("alter system set fsync = on")
        admin.execute("select pg_reload_conf()")
        wait_until(lambda: _fsync(server) == "on", "the setting to be read")
        yield
        admin.execute("alter system reset fsync")
        admin.execute("select pg_reload_conf()")


@pytest.fixture
def well(db: Database, safe_server: None) -> Database:  # noqa: ARG001
    """A database in which all is well: something purges it."""
    execute(db, "select idem.purge()")
    return db


def _fsync(server: Cluster) -> str:
    with psycopg.connect(server.dsn()) as connection:
        return str(connection.execute("show fsync").fetchall()[0][0])


def execute(database: Database, *statements: str) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as admin:
        for statement in statements:
            admin.execute(statement.encode())


def failing(database: Database, *options: str, user: str = OWNER) -> dict[str, dict[str, Any]]:
    """The checks that fail, by name; the exit code must agree."""
    done = pyidem(database, "doctor", "--json", *options, user=user)
    report = json.loads(done.stdout)
    failed = {check["check_name"]: check for check in report["checks"] if check["ok"] is False}
    assert (done.returncode, report["ok"]) == (1 if failed else 0, not failed)
    return failed


def refusal(done: Done) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_healthy(well: Database) -> None:
    done = pyidem(well, "doctor", "--round-trip")

    assert done.returncode == 0, done.stdout
    assert "FAILS" not in done.stdout
    assert "started, then replay" in done.stdout
    assert failing(well, "--round-trip") == {}


def test_a_round_trip_leaves_nothing_behind(well: Database) -> None:
    pyidem(well, "doctor", "--round-trip")
    with psycopg.connect(well.dsn) as connection:
        assert connection.execute("select from idem_private.reservation").fetchall() == []


def test_a_monitor_needs_no_more_than_its_grant(well: Database) -> None:
    role = well.create_role("monitor")
    execute(well, f"select idem.grant_monitor('{role}')")

    assert failing(well, user=role) == {}
    failed = failing(well, "--round-trip", user=role)
    assert list(failed) == ["round_trip"]
    assert failed["round_trip"]["fix"].startswith(f"select idem.grant_client('{role}');")


def test_no_pg_cron(db: Database, safe_server: None) -> None:  # noqa: ARG001
    failed = failing(db)

    assert list(failed) == ["purge_job"]
    assert "pg_cron is not in this database" in failed["purge_job"]["detail"]


def test_function_edited_by_hand(well: Database) -> None:
    execute(well, "alter function idem.reserve volatile security invoker")
    failed = failing(well)

    assert list(failed) == ["drift"]
    assert "function idem.reserve" in failed["drift"]["detail"]
    subprocess.run(
        failed["drift"]["fix"],
        shell=True,
        check=True,
        cwd=ROOT,
        env=os.environ
        | well.environment
        | {"PGUSER": OWNER, "PATH": os.pathsep.join([str(well.cluster.bindir), os.environ["PATH"]])},
    )
    assert failing(well) == {}


def test_a_broken_function_fails_the_round_trip(well: Database) -> None:
    execute(
        well,
        "create or replace function idem_private.clock() returns timestamptz"
        " language sql as 'select null::timestamptz'",
    )

    assert {"drift", "round_trip"} <= set(failing(well, "--round-trip"))


def test_execute_revoked_from_an_application(well: Database) -> None:
    role = well.create_role("app")
    execute(well, f"select idem.grant_client('{role}')", f"revoke execute on function idem.reserve from {role}")
    failed = failing(well)

    assert list(failed) == ["grants"]
    assert f"idem.reserve of {role}" in failed["grants"]["detail"]
    execute(well, failed["grants"]["fix"])
    assert failing(well) == {}


def test_execute_revoked_from_whoever_asks(db: Database) -> None:
    role = db.create_role("nobody")
    said = refusal(pyidem(db, "doctor", user=role))

    assert f"select idem.grant_monitor('{role}');" in said


def test_not_installed(empty_db: Database) -> None:
    said = refusal(pyidem(empty_db, "doctor"))

    assert f"pyidem is not installed in database {empty_db.name}" in said
    assert "pyidem upgrade" in said


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        (__version__, None),
        ("{}.0", None),
        ("{}.99", None),
        ("0.0.9", "pyidem upgrade"),
        ("9.0.0", "pip install 'pyidem==9.0.0'"),
    ],
)
def test_with_the_same_revision_versions_count_as_they_do_for_a_client(version: str, fix: str | None) -> None:
    installed = version.format(".".join(__version__.split(".")[:2]))
    found = program({"check_name": "version", "detail": f"pyidem {installed}, revision {migrate.head()}"})

    assert (found["ok"], found["fix"]) == (fix is None, fix)


def test_a_database_of_another_version(well: Database) -> None:
    for revision, found, fix in (
        ("idem_0000", "an upgrade of the database is missing", "pyidem upgrade"),
        ("idem_9999", "the database is newer", f"pip install 'pyidem=={well.version()}'"),
    ):
        execute(well, f"update idem_private.alembic_version set version_num = '{revision}'")
        failed = failing(well)

        assert list(failed) == ["program"]
        assert failed["program"]["detail"].startswith(found)
        assert migrate.head() in failed["program"]["detail"]
        assert failed["program"]["fix"] == fix


def test_a_database_so_old_that_it_has_no_checks(db: Database) -> None:
    execute(db, "drop function idem.health")
    said = refusal(pyidem(db, "doctor"))

    assert "another version of pyidem" in said
    assert "pyidem upgrade" in said


def test_testing_enabled(well: Database) -> None:
    well.enable_testing()
    failed = failing(well)

    assert list(failed) == ["testing"]
    execute(well, failed["testing"]["fix"])
    assert failing(well) == {}


def test_read_only_by_default(well: Database) -> None:
    execute(well, f"alter database {well.name} set default_transaction_read_only = on")
    failed = failing(well, "--round-trip")

    assert list(failed) == ["writable", "round_trip"]
    assert "default_transaction_read_only is on" in failed["writable"]["detail"]
    assert "read-only transaction" in failed["round_trip"]["detail"]


def test_the_table_has_a_line_for_each_check_and_the_fixes_below(well: Database) -> None:
    well.enable_testing()
    done = pyidem(well, "doctor")

    assert done.returncode == 1
    assert [line.split()[:2] for line in done.stdout.splitlines() if "FAILS" in line] == [["testing", "FAILS"]]
    assert done.stdout.endswith("\ntesting: to put it right\n    select idem.disable_testing();\n")


def test_stats_counts_what_is_stuck_and_estimates_the_rest(db: Database) -> None:
    stick(db, ("shop", "a"), ("shop", "b"))
    execute(
        db, "select idem.once('shop', n::text) from generate_series(1, 50) as n", "analyze idem_private.reservation"
    )
    rows = json.loads(pyidem(db, "stats", "--json").stdout)

    assert [(row["policy"], row["state"], row["keys"], row["estimated"]) for row in rows] == [
        ("default", "lapsed", 2, False),
        ("default", "finished", 0, True),
        ("messages", "finished", 50, True),
    ]
    shown = pyidem(db, "stats").stdout.splitlines()
    assert shown[0].split() == ["policy", "state", "keys", "estimated", "oldest", "bytes"]
    assert shown[1].split()[:4] == ["default", "lapsed", "2", "no"]

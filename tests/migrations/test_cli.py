"""The commands that install: what they print, where, and their exit codes."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pyidem import __version__, migrate
from tests.migrations.support import Done, catalog, cli, cli_environment, is_installed, owner_dsn, program, run_sql
from tests.support.database import ROOT, Database


def store_keys(database: Database, count: int) -> None:
    with psycopg.connect(owner_dsn(database)) as connection:
        for number in range(count):
            connection.execute(
                "select idem.reserve('scope', %s, mode => 'leased', lease => '1 minute')", [f"key-{number}"]
            )


def test_it_installs_shows_and_removes(empty_db: Database) -> None:
    dsn = ("--dsn", owner_dsn(empty_db))
    steps = [
        (("current",), "not installed"),
        (("upgrade",), "Upgraded to idem_0001."),
        (("current",), "idem_0001 (head)"),
        (("upgrade", "idem_0001"), "Nothing to do: at idem_0001."),
        (("downgrade", "base"), "Downgraded to base."),
        (("upgrade", "+1"), "Upgraded to idem_0001."),
        (("downgrade", "-1"), "Downgraded to base."),
        (("downgrade", "base"), "Nothing to do: at base."),
    ]
    for arguments, output in steps:
        done = cli(*arguments, *dsn)
        assert (done.returncode, done.stdout, done.stderr) == (0, output + "\n", ""), arguments


def test_the_database_comes_from_the_environment(db: Database) -> None:
    by_libpq = cli("current", env=db.environment)
    by_dsn = cli("current", env={"PYIDEM_DSN": db.dsn})
    option_first = cli("current", "--dsn", db.dsn, env={"PYIDEM_DSN": "host=127.0.0.1 port=1"})

    assert by_libpq.stdout == by_dsn.stdout == option_first.stdout == "idem_0001 (head)\n"


@pytest.mark.parametrize("arguments", [("sql",), ("upgrade", "--sql")])
def test_it_prints_sql_without_connecting(arguments: tuple[str, ...], empty_db: Database, tmp_path: Path) -> None:
    done = cli(*arguments, env={"PYIDEM_DSN": "host=127.0.0.1 port=1"})
    assert (done.returncode, done.stderr) == (0, "")
    run_sql(empty_db, done.stdout, tmp_path)

    assert is_installed(empty_db)


def test_it_prints_the_way_back(db: Database, tmp_path: Path) -> None:
    run_sql(db, cli("sql", "--from", "idem_0001", "--to", "base").stdout, tmp_path)

    assert migrate.current(db.dsn) is None


@pytest.mark.parametrize("revision", ["base", "-1"])
def test_keys_are_not_forgotten_without_a_yes(revision: str, db: Database) -> None:
    store_keys(db, 3)
    before = catalog(db)

    refused = cli("downgrade", revision, "--dsn", owner_dsn(db))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "this forgets 3 stored keys" in refused.stderr
    assert "--yes" in refused.stderr
    assert catalog(db) == before

    agreed = cli("downgrade", revision, "--yes", "--dsn", owner_dsn(db))
    assert (agreed.returncode, agreed.stdout) == (0, "Downgraded to base.\n")


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, "idem_0001"), ("y", 0, None)])
def test_at_a_terminal_it_asks(answer: str, code: int, left: str | None, db: Database) -> None:
    store_keys(db, 1)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pyidem", "downgrade", "base", "--dsn", owner_dsn(db)]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=cli_environment()
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        output, _ = process.communicate()
    os.close(ours)
    os.close(theirs)

    assert "this forgets 1 stored key:" in output
    assert process.returncode == code
    assert migrate.current(db.dsn) == left


def test_a_server_that_does_not_answer_is_one_line() -> None:
    done = cli("current", "--dsn", "host=127.0.0.1 port=1")

    assert done.returncode == 1
    assert done.stderr.startswith("pyidem: cannot connect: ")
    assert "Connection refused" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_dsn_that_is_none_is_one_line() -> None:
    done = cli("current", "--dsn", "nonsense")

    assert done.returncode == 1
    assert done.stderr.startswith("pyidem: ")
    assert done.stderr.count("\n") == 1


def test_a_missing_right_comes_with_the_statement_that_grants_it(empty_db: Database) -> None:
    role = empty_db.create_role("newcomer")
    done = cli("upgrade", "--dsn", empty_db.dsn_of(role))

    assert done.returncode == 1
    assert "(SQLSTATE 42501)" in done.stderr
    assert f"grant create on database {empty_db.name} to {role};" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_downgrade_names_what_depends(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        connection.execute("create view public.mine as select * from idem.keys")
    done = cli("downgrade", "base", "--dsn", owner_dsn(db))

    assert done.returncode == 1
    assert "(SQLSTATE 2BP01)" in done.stderr
    assert "mine depends on view idem.keys" in done.stderr
    assert "CASCADE" not in done.stderr


@pytest.mark.parametrize("arguments", [("--from", "nope"), ("--to", "nope"), ("--from", "idem_0001", "--to", "nope")])
def test_sql_of_an_unknown_revision_is_one_line(arguments: tuple[str, ...]) -> None:
    done = cli("sql", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pyidem: ")
    assert done.stderr.count("\n") == 1


def test_an_unknown_revision_is_one_line(db: Database) -> None:
    done = cli("upgrade", "idem_9999", "--dsn", owner_dsn(db))

    assert (done.returncode, done.stderr) == (1, "pyidem: Can't locate revision identified by 'idem_9999'\n")


@pytest.mark.parametrize("package", ["typer", "rich", "alembic", "sqlalchemy", "psycopg_pool"])
def test_a_missing_package_comes_with_the_extra_that_brings_it(package: str) -> None:
    hide = f"import sys; sys.modules['{package}'] = None; from pyidem.cli import main; main()"
    done = program(sys.executable, "-c", hide, "current")

    assert done.returncode == 1
    assert done.stderr == f"pyidem: the command line needs {package}: pip install 'pyidem[cli]'\n"


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "pyidem"], [Path(sys.executable).with_name("pyidem")]], ids=["module", "script"]
)
def test_it_starts_as_a_module_and_as_a_script(command: list[str | Path]) -> None:
    assert program(*command, "--version") == Done(0, f"pyidem {__version__}\n", "")


def test_alembic_itself_finds_the_migrations_in_a_checkout(db: Database) -> None:
    done = program(
        Path(sys.executable).with_name("alembic"), "-c", ROOT / "pyproject.toml", "-x", f"dsn={db.dsn}", "current"
    )

    assert (done.returncode, done.stdout) == (0, "idem_0001 (head)\n"), done.stderr


def test_help_names_every_command_and_every_command_has_help() -> None:
    overview = cli("--help").stdout
    for command in ("upgrade", "downgrade", "current", "sql", "list", "show", "resolve", "sweep"):
        assert command in overview
        assert "--help" in cli(command, "--help").stdout


def test_wrong_usage_is_exit_code_2() -> None:
    assert cli("upgrade", "--nonsense").returncode == 2
    assert cli("nonsense").returncode == 2

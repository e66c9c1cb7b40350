"""The command line as a user has it: a program, in a directory, without a terminal unless one is given."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg

from tests.migrations.support import Done, cli_environment
from tests.support.database import OWNER, Database

PYIDEM = str(Path(sys.executable).with_name("pyidem"))


def pyidem(database: Database | None, *arguments: str, cwd: Path | None = None, user: str = OWNER) -> Done:
    """Run the command with a database that it finds in the environment, as its owner unless told otherwise."""
    done = subprocess.run(
        [PYIDEM, *arguments],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(database, user),
        cwd=cwd,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def at_terminal(database: Database, answer: str, *arguments: str) -> Done:
    """Run the command at a terminal, where somebody types an answer; both streams are in its `stdout`."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [PYIDEM, *arguments],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(database, OWNER),
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        output, _ = process.communicate()
    os.close(ours)
    os.close(theirs)
    return Done(process.returncode, output, "")


def pyidem_json(database: Database, command: str, *arguments: str) -> Any:
    """Run a command with --json, which must succeed, and return what it printed."""
    done = pyidem(database, command, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def environment(database: Database | None, user: str) -> dict[str, str]:
    """The environment in which a user of a database works."""
    return cli_environment() | ({} if database is None else database.environment | {"PGUSER": user})


def stick(database: Database, *names: tuple[str, str], policy: str = "default") -> None:
    """Leave lapsed keys behind."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        for scope, key in names:
            connection.execute(
                "select idem.defer(%(s)s, %(k)s, token, reason => 'the provider timed out')"
                " from idem.reserve(%(s)s, %(k)s, mode => 'leased', policy => %(p)s)",
                {"s": scope, "k": key, "p": policy},
            )


def outcome(database: Database, scope: str, key: str) -> str:
    """Return the state of a key."""
    with psycopg.connect(database.dsn) as connection:
        row = connection.execute("select outcome from idem.lookup(%s, %s)", [scope, key]).fetchone()
    assert row is not None
    return str(row[0])

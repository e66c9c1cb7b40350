"""What the tests of installing share: the catalog as a value, and the ways to run SQL and the command line."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict
from typer.testing import CliRunner

from pyidem import migrate
from pyidem.cli.app import app
from tests.support.database import Database

SNAPSHOT = (Path(__file__).parent / "snapshot.sql").read_text()

Catalog = dict[tuple[str, str], str]


def catalog(database: Database) -> Catalog:
    """Everything in both schemas: (kind, name) -> definition."""
    with psycopg.connect(database.dsn) as connection:
        return {(kind, name): definition for kind, name, definition in connection.execute(SNAPSHOT)}


def shipped_rows(database: Database) -> list[str]:
    """The rows that an installation leaves in tables, but for the random secret."""
    with psycopg.connect(database.dsn) as connection:
        return [
            row[0]
            for row in connection.execute(
                "select to_jsonb(p)::text from idem.policies as p"
                " union all select version_num from idem_private.alembic_version order by 1"
            )
        ]


def recorded_objects(database: Database) -> list[tuple[str, ...]]:
    """What the installation has recorded of its objects."""
    with psycopg.connect(database.dsn) as connection:
        return connection.execute(
            "select kind, name, part_of, definition::text from idem_private.object order by kind, name"
        ).fetchall()


def run_sql(database: Database, text: str, tmp_path: Path, *, user: str | None = None) -> None:
    """Run SQL text with psql."""
    file = tmp_path / "script.sql"
    file.write_text(text)
    database.psql(file, user=user or database.owner)


def uri(database: Database, scheme: str) -> str:
    """The URI of the owner's connection, for SQLAlchemy or libpq."""
    parts = conninfo_to_dict(owner_dsn(database))
    return f"{scheme}://{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}/{parts['dbname']}"


def owner_dsn(database: Database) -> str:
    """The connection string of the owner, who is no superuser."""
    return database.dsn_of(database.owner)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def cli(*arguments: str, env: dict[str, str] | None = None) -> Done:
    """Run the command line in this process, without a terminal."""
    unset = {name: None for name in os.environ if name not in cli_environment()}
    result = CliRunner().invoke(app, arguments, prog_name="pyidem", env={**unset, **cli_environment(), **(env or {})})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def program(*command: str | Path) -> Done:
    """Run a program without a terminal."""
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=cli_environment()
    )
    return Done(done.returncode, done.stdout, done.stderr)


def cli_environment() -> dict[str, str]:
    """The environment without anything that names a database."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PG") and name not in {"PYIDEM_DSN", "PYTHONPATH"}
    }
    return kept | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


def is_installed(database: Database) -> bool:
    """Whether the database is at the head and answers a call."""
    with psycopg.connect(owner_dsn(database)) as connection:
        row = connection.execute("select outcome from idem.reserve('scope', 'key')").fetchone()
        connection.rollback()
    return row == ("started",) and migrate.current(database.dsn) == migrate.head()

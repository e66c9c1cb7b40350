"""Databases of the throwaway server, each with pyidem installed, and what tests do with them."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from pytest_postgresql.janitor import DatabaseJanitor

from pyidem.embedded import Cluster
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
OWNER = "idem_owner"
TEMPLATE = "idem_template"

_numbers = itertools.count(1)


class Database:
    """One database, owned by the role OWNER, which is no superuser.

    Connections made here and roles created here go when the database does.
    """

    def __init__(self, cluster: Cluster, name: str, cleanup: ExitStack) -> None:
        self.cluster = cluster
        self.name = name
        self.owner = OWNER
        self._cleanup = cleanup

    @property
    def dsn(self) -> str:
        """The connection string of the superuser."""
        return self.dsn_of(self.cluster.user)

    def dsn_of(self, user: str) -> str:
        """The connection string of a role that `create_role` made, or of `owner`."""
        return self.cluster.dsn(self.name, user=user)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead programs without a connection string to this database as the superuser."""
        return {
            "PGHOST": self.cluster.host,
            "PGPORT": str(self.cluster.port),
            "PGUSER": self.cluster.user,
            "PGPASSWORD": self.cluster.password,
            "PGDATABASE": self.name,
        }

    def connect(self, *, user: str | None = None, **options: Any) -> psycopg.Connection:
        """Open a connection, as the superuser unless another user is named; options are those of psycopg."""
        connection = psycopg.connect(self.dsn_of(user or self.cluster.user), **options)
        self._cleanup.callback(connection.close)
        return connection

    def create_role(self, prefix: str = "app") -> str:
        """Create a login role without any rights and return its name, which no other test uses."""
        name = f"{prefix}_{self.name}_{next(_numbers)}"
        self._admin.execute(
            sql.SQL("create role {} login password {}").format(sql.Identifier(name), self.cluster.password)
        )
        self._cleanup.callback(self._drop_role, name)
        return name

    def enable_testing(self) -> None:
        """Let this database honour idem.clock_offset and idem.single_transaction."""
        self._admin.execute("select idem.enable_testing()")

    def version(self) -> str:
        """Return what is installed here, which the program may be a patch ahead of."""
        [(found,)] = self._admin.execute("select idem.version()").fetchall()
        return str(found)

    def psql(self, script: Path, *, user: str | None = None) -> str:
        """Run a file with psql, stopping at the first error, and return what it printed."""
        return run_psql(self.cluster, self.dsn_of(user or self.cluster.user), script)

    def is_blocked(self, connection: psycopg.Connection) -> bool:
        """Tell whether the connection's backend waits for a lock that another session holds."""
        answer = self._admin.execute(
            "select cardinality(pg_blocking_pids(%s)) > 0", [connection.info.backend_pid]
        ).fetchone()
        assert answer is not None
        return bool(answer[0])

    def wait_until_blocked(self, connection: psycopg.Connection) -> None:
        """Return when the connection's backend waits for another session's lock; fail if it never does."""
        wait_until(lambda: self.is_blocked(connection), f"backend {connection.info.backend_pid} to wait for a lock")

    @cached_property
    def _admin(self) -> psycopg.Connection:
        """A connection of our own that is never inside a transaction."""
        return self.connect(autocommit=True, application_name="tests")

    def _drop_role(self, name: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as admin:
            admin.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(name)))


@contextmanager
def new_database(
    cluster: Cluster, name: str | None = None, *, template: str | None = None, as_template: bool = False
) -> Iterator[Database]:
    """Create a database, empty or from a template, and drop it afterwards."""
    name = name or f"test_{next(_numbers)}"
    janitor = DatabaseJanitor(
        user=cluster.user,
        host=cluster.host,
        port=cluster.port,
        password=cluster.password,
        dbname=name,
        template_dbname=template,
        as_template=as_template,
    )
    with janitor:
        with janitor.cursor() as cursor:
            cursor.execute(sql.SQL("alter database {} owner to {}").format(sql.Identifier(name), sql.Identifier(OWNER)))
        with ExitStack() as cleanup:
            yield Database(cluster, name, cleanup)


def run_psql(cluster: Cluster, dsn: str, script: Path) -> str:
    """Run a file with psql, stopping at the first error, and return what it printed."""
    command: list[str | Path] = [cluster.bindir / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn, "-f", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"psql -f {script} failed:\n{done.stderr}"
    return done.stdout


def advance_clock(connection: psycopg.Connection, by: timedelta) -> None:
    """Move this session's clock further on; the database must have testing enabled."""
    connection.execute(
        "select set_config('idem.clock_offset',"
        " (coalesce(nullif(current_setting('idem.clock_offset', true), ''), '0')::interval + %s)::text, false)",
        [by],
    )

"""A dump restored on another version of PostgreSQL: run by tests.versions.run, which names the other server."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from pyidem.embedded import Cluster
from tests.support.calls import complete, reserve
from tests.support.database import OWNER, ROOT, Database, new_database
from tests.support.server import Server


@pytest.fixture
def other_db() -> Iterator[Database]:
    """An empty database on a server of the other version."""
    with Cluster(Path(os.environ["PYIDEM_OTHER_BINDIR"])) as cluster:
        with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(OWNER), cluster.password))
        with new_database(cluster) as database:
            yield database


@pytest.fixture
def older_and_newer(empty_db: Database, other_db: Database) -> tuple[Database, Database]:
    """Two empty databases on two versions, the older one first: dumps go only one way."""
    older, newer = sorted((empty_db, other_db), key=major)
    assert major(older) < major(newer)
    return older, newer


def major(database: Database) -> int:
    with psycopg.connect(database.dsn) as connection:
        return connection.info.server_version // 10000


def test_it_has_no_drift_and_knows_its_keys(
    installation: Server, older_and_newer: tuple[Database, Database], tmp_path: Path
) -> None:
    assert os.environ["PYIDEM_OTHER_BINDIR"] != str(installation.bindir)
    older, newer = older_and_newer
    older.psql(ROOT / "sql" / "install.sql", user=OWNER)
    with psycopg.connect(older.dsn) as connection:
        complete(connection, "done", reserve(connection, "done").token, status=201, body=b"\x00")
    programs, dump = newer.cluster.bindir, tmp_path / "dump"
    for environment, *command in (
        (older.environment, "pg_dump", "--format=custom", f"--file={dump}"),
        (newer.environment, "pg_restore", "--exit-on-error", f"--dbname={newer.name}", str(dump)),
    ):
        subprocess.run([programs / command[0], *command[1:]], check=True, env=os.environ | environment)

    with psycopg.connect(newer.dsn_of(OWNER)) as connection:
        assert connection.execute("select * from idem_private.drift()").fetchall() == []
        assert reserve(connection, "done").body == b"\x00"
        connection.execute("alter function idem.version() volatile")
        assert connection.execute("select object from idem_private.drift()").fetchall() == [
            ("function idem.version()",)
        ]

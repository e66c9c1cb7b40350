"""A dump restored on another version of PostgreSQL: run by tests.versions.run, which names the other server."""

import os
import re
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

# Servers released since November 2026 mark every column; a newer major version released before that refuses the mark.
MARK_OF_LATER_RELEASES = re.compile(r"^ALTER TABLE ONLY \S+ ALTER COLUMN \S+ SET \(pg_attver=\d+\);\n", re.MULTILINE)


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
    dump = tmp_path / "dump.sql"
    command = [newer.cluster.bindir / "pg_dump", f"--file={dump}"]
    subprocess.run(command, check=True, env=os.environ | older.environment)
    dump.write_text(MARK_OF_LATER_RELEASES.sub("", dump.read_text()))
    newer.psql(dump)

    with psycopg.connect(newer.dsn_of(OWNER)) as connection:
        assert connection.execute("select * from idem_private.drift()").fetchall() == []
        assert reserve(connection, "done").body == b"\x00"
        connection.execute("alter function idem.version() volatile")
        assert connection.execute("select object from idem_private.drift()").fetchall() == [
            ("function idem.version()",)
        ]

"""The database that pg_cron lives in: there is one for a server, so these tests share it and leave nothing behind."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from pyidem.embedded import Cluster
from tests.support.database import OWNER, ROOT, Database


@pytest.fixture
def cron_db(server: Cluster, sources: Path) -> Iterator[Database]:
    """The database of pg_cron, with pyidem installed by OWNER, who may use pg_cron."""
    with ExitStack() as cleanup:
        database = Database(server, "postgres", cleanup)
        admin = database.connect(autocommit=True)
        admin.execute("create extension pg_cron")
        cleanup.callback(admin.execute, "drop extension pg_cron")
        admin.execute(sql.SQL("grant create on database postgres to {}").format(sql.Identifier(OWNER)))
        admin.execute(sql.SQL("grant usage on schema cron to {}").format(sql.Identifier(OWNER)))
        database.psql(sources / "install.sql", user=OWNER)
        cleanup.callback(database.psql, ROOT / "sql" / "uninstall.sql", user=OWNER)
        yield database


@pytest.fixture
def owner(cron_db: Database) -> psycopg.Connection:
    """A connection of OWNER there."""
    return cron_db.connect(user=OWNER, autocommit=True)


@pytest.fixture
def admin(cron_db: Database) -> psycopg.Connection:
    """A connection of the superuser there."""
    return cron_db.connect(autocommit=True)

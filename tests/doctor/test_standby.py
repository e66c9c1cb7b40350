"""A read-only standby, and the primary that has one."""

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.conftest import SETTINGS
from tests.doctor.test_doctor import failing
from tests.support.database import Database
from tests.support.server import Server
from tests.support.standby import Standby


@pytest.fixture
def standby_db(db: Database, installation: Server) -> Iterator[Database]:
    """The database `db` on a standby of its server."""
    with Standby(installation.bindir, db.cluster, SETTINGS) as standby, ExitStack() as cleanup:
        yield Database(standby, db.name, cleanup)


@pytest.mark.parts
def test_a_standby_says_what_it_is_and_its_primary_that_it_may_lose_keys(db: Database, standby_db: Database) -> None:
    failed = failing(standby_db, "--round-trip")
    # fsync is off there; what only its primary can do is not asked of it
    assert set(failed) == {"writable", "durability", "round_trip"}
    assert "read-only standby" in failed["writable"]["detail"]
    assert "target_session_attrs=read-write" in failed["writable"]["fix"]

    with psycopg.connect(standby_db.dsn) as reader:
        assert reader.execute("select from idem.stats()").fetchall() == []
    with psycopg.connect(db.dsn) as primary:
        replication = primary.execute(
            "select ok, detail from idem.health() where check_name = 'replication'"
        ).fetchone()
    assert replication is not None
    assert replication[0] is None
    assert "none synchronous" in replication[1]

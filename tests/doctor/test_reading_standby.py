"""What a streaming standby answers: lookup and stats read, everything else is for the primary."""

import psycopg
import pytest

from tests.doctor.test_standby import standby_db as standby_db  # noqa: PLC0414 - a fixture
from tests.support.database import Database
from tests.support.waiting import wait_until


def test_lookup_and_stats_read_what_has_arrived_on_a_standby(db: Database, standby_db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as primary, psycopg.connect(standby_db.dsn) as standby:
        standby.autocommit = True
        primary.execute("select idem.reserve('shop', 'open', mode => 'leased')")
        primary.execute("select idem.once('shop', 'done')")

        def outcome(key: str) -> str:
            row = standby.execute("select outcome from idem.lookup('shop', %s)", [key]).fetchone()
            assert row is not None
            return str(row[0])

        wait_until(lambda: outcome("done") == "completed", "the standby to follow")
        assert outcome("open") == "in_progress"
        assert outcome("never") == "absent"
        stats = standby.execute("select policy, keys from idem.stats() where state = 'in_progress'").fetchall()
        assert stats == [("default", 1)]
        for call in ("idem.reserve('shop', 'new')", "idem.once('shop', 'new')", "idem.purge()"):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                standby.execute(f"select {call}".encode())

"""What idem.health says of the real pg_cron, to whom only an administrator's eyes show the jobs of others."""

import psycopg
import pytest

from tests.cli.support import pyidem
from tests.support.database import OWNER, Database

pytestmark = pytest.mark.parts


def checks(connection: psycopg.Connection) -> dict[str, tuple[bool | None, str]]:
    rows = connection.execute("select check_name, ok, detail from idem.health() where check_name like 'purge_job%'")
    return {name: (ok, detail) for name, ok, detail in rows}


def test_the_job_of_the_owner_is_seen(owner: psycopg.Connection) -> None:
    assert checks(owner)["purge_job"][0] is False
    row = owner.execute("select idem.schedule()").fetchone()
    assert row is not None

    found = checks(owner)
    assert found["purge_job"] == (True, f"job {row[0]} of role {OWNER} is active")
    assert found["purge_job_runs"][0] is None


def test_a_job_whose_role_is_gone_is_named(
    cron_db: Database, owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    admin.execute("create role idem_left login")
    admin.execute(
        "select cron.schedule_in_database('left', '0 4 * * *', 'call idem.purge_all()', 'postgres', 'idem_left')"
    )
    admin.execute("drop role idem_left")
    ok, detail = checks(owner)["purge_job"]
    assert (ok, f"no job of pg_cron that role {OWNER} can see" in detail) == (False, True)

    admin.execute(f"alter role {OWNER} bypassrls")
    try:
        done = pyidem(cron_db, "doctor")
    finally:
        admin.execute(f"alter role {OWNER} nobypassrls")
    assert done.returncode == 1
    assert "belongs to role idem_left, which does not exist" in done.stdout

"""pg_cron purges by itself. Its shortest period is a minute (before 1.5), so everything that takes a run is here."""

import psycopg
import pytest

from tests.support.calls import complete, reserve, set_policy
from tests.support.database import Database
from tests.support.waiting import wait_until

pytestmark = pytest.mark.parts


def test_the_job_purges_and_tidies_up_after_itself(
    cron_db: Database, owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    set_policy(owner, "brief", ttl="1 millisecond", lease="1 microsecond", min_retention="1 millisecond")
    with owner.transaction():
        for number in range(25):
            complete(owner, f"gone {number}", reserve(owner, f"gone {number}", policy="brief").token, status=201)
        complete(owner, "kept", reserve(owner, "kept").token, status=201)
    reserve(owner, "unknown", mode="leased", policy="brief")

    job = owner.execute("select idem.schedule(max_rows => 10)").fetchone()
    record = (
        "insert into cron.job_run_details (jobid, database, username, command, status, start_time, end_time)"
        " select jobid, database, %s, %s, 'succeeded', now() - %s::interval, now() - %s::interval from cron.job"
    )
    ours, command = cron_db.owner, "call idem.purge_all(10000, '45 seconds')"
    for user, text, age in [
        (ours, command, "8 days"), (ours, command, "6 days"), (ours, "select 1", "8 days"),
        (cron_db.cluster.user, command, "8 days"),
    ]:  # fmt: skip
        admin.execute(record, [user, text, age, age])

    ended = "select from cron.job_run_details where end_time > now() - interval '1 hour'"
    wait_until(lambda: bool(admin.execute(ended).fetchall()), "the job to run", timeout=150)

    runs = admin.execute(
        "select jobid, status from cron.job_run_details where start_time > now() - interval '1 hour'"
    ).fetchall()
    assert runs == [(*job, "succeeded")]
    assert owner.execute("select key, outcome from idem.keys order by key").fetchall() == [
        ("kept", "completed"),
        ("unknown", "lapsed"),
    ]
    left = admin.execute(
        "select username, command, end_time < now() - interval '7 days' from cron.job_run_details"
        " where start_time < now() - interval '1 hour' order by runid"
    ).fetchall()
    assert left == [(ours, command, False), (ours, "select 1", True), (cron_db.cluster.user, command, True)]
    assert admin.execute("select removed, caught_up from idem_private.last_purge").fetchone() == (25, True)

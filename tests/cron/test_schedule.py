"""idem.schedule and idem.unschedule with the real pg_cron, as a role that is no superuser."""

import psycopg
import pytest
from psycopg import errors, sql

from pyidem import migrate
from tests.support.database import OWNER, ROOT, Database

pytestmark = pytest.mark.parts

NAME = "pyidem purge postgres"
COMMAND = "call idem.purge_all(10000, '45 seconds')"


def jobs(admin: psycopg.Connection) -> list[tuple[object, ...]]:
    return admin.execute("select jobname, schedule, command, username, active from cron.job order by jobid").fetchall()


def warnings_of(connection: psycopg.Connection) -> list[str]:
    heard: list[str] = []
    connection.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
    return heard


def test_one_job_whoever_schedules_it_and_however_often(
    cron_db: Database, owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    operator = cron_db.create_role("operator")
    admin.execute(sql.SQL("grant usage on schema idem to {}").format(sql.Identifier(operator)))
    admin.execute(sql.SQL("grant execute on function idem.schedule to {}").format(sql.Identifier(operator)))
    first = owner.execute("select idem.schedule()").fetchall()
    for connection in (owner, admin, cron_db.connect(user=operator, autocommit=True)):
        assert connection.execute("select idem.schedule()").fetchall() == first

    assert jobs(admin) == [(NAME, "* * * * *", COMMAND, OWNER, True)]


def test_scheduled_again_it_is_changed(owner: psycopg.Connection, admin: psycopg.Connection) -> None:
    owner.execute("select idem.schedule()")
    owner.execute("select idem.schedule('*/5 * * * *', 500, '2 minutes')")
    assert jobs(admin) == [(NAME, "*/5 * * * *", "call idem.purge_all(500, '120 seconds')", OWNER, True)]

    owner.execute("select idem.schedule(job_name => 'other')")
    assert jobs(admin) == [("other", "* * * * *", COMMAND, OWNER, True)]


def test_scheduled_again_it_is_active(owner: psycopg.Connection, admin: psycopg.Connection) -> None:
    owner.execute("select idem.schedule()")
    admin.execute("select cron.alter_job(jobid, active => false) from cron.job")
    owner.execute("select idem.schedule()")
    assert jobs(admin) == [(NAME, "* * * * *", COMMAND, OWNER, True)]


def test_what_was_scheduled_by_hand_is_replaced(owner: psycopg.Connection, admin: psycopg.Connection) -> None:
    owner.execute("select cron.schedule('0 4 * * *', 'CALL idem.purge_all()')")
    owner.execute("select idem.schedule()")
    assert jobs(admin) == [(NAME, "* * * * *", COMMAND, OWNER, True)]


def test_jobs_of_others_and_for_other_databases_are_left_alone(
    owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    admin.execute("select cron.schedule('theirs', '0 4 * * *', 'vacuum')")
    owner.execute("select cron.schedule('mine', '0 4 * * *', 'select 1')")
    admin.execute(
        "select cron.schedule_in_database('elsewhere', '0 4 * * *', 'call idem.purge_all()', 'template1', %s)", [OWNER]
    )
    before = jobs(admin)

    owner.execute("select idem.schedule()")
    assert owner.execute("select idem.unschedule()").fetchone() == (1,)
    assert jobs(admin) == before


def test_a_name_that_another_job_has_is_refused(owner: psycopg.Connection, admin: psycopg.Connection) -> None:
    owner.execute("select cron.schedule('mine', '0 4 * * *', 'select 1')")
    before = jobs(admin)
    with pytest.raises(errors.InvalidParameterValue) as refusal:
        owner.execute("select idem.schedule(job_name => 'mine')")
    assert '"job_name_taken"' in str(refusal.value.diag.message_detail)
    assert jobs(admin) == before


def test_a_duplicate_of_another_role_is_named_where_it_can_be_seen(
    cron_db: Database, owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    admin.execute("select cron.schedule('second', '* * * * *', 'call idem.purge_all()')")
    admin.execute(sql.SQL("alter role {} superuser").format(sql.Identifier(OWNER)))
    try:
        heard = warnings_of(owner)
        owner.execute("select idem.schedule()")
        assert [message for message in heard if cron_db.cluster.user in message]
        assert owner.execute("select idem.unschedule()").fetchone() == (1,)
        assert [name for name, *_ in jobs(admin)] == ["second"], "it is not ours to remove"
    finally:
        admin.execute(sql.SQL("alter role {} nosuperuser").format(sql.Identifier(OWNER)))


@pytest.mark.parametrize("schedule", ["* * *", "nonsense", "61 * * * *"])
def test_a_schedule_that_pg_cron_does_not_understand_is_refused(schedule: str, owner: psycopg.Connection) -> None:
    with pytest.raises(errors.InvalidParameterValue) as refusal:
        owner.execute("select idem.schedule(%s)", [schedule])
    assert '"schedule_unfit"' in str(refusal.value.diag.message_detail)


def test_without_a_right_to_pg_cron_the_owner_is_told_what_to_grant(
    owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    admin.execute(sql.SQL("revoke usage on schema cron from {}").format(sql.Identifier(OWNER)))
    with pytest.raises(errors.InsufficientPrivilege) as refusal:
        owner.execute("select idem.schedule()")
    assert f"grant usage on schema cron to {OWNER};" in str(refusal.value.diag.message_hint)
    assert owner.execute("select idem.unschedule()").fetchone() == (0,)


def test_unschedule_may_be_repeated(owner: psycopg.Connection, admin: psycopg.Connection) -> None:
    owner.execute("select idem.schedule()")
    assert owner.execute("select idem.unschedule(), idem.unschedule()").fetchone() == (1, 0)
    assert jobs(admin) == []


@pytest.mark.parametrize("user", [OWNER, None], ids=["owner", "superuser"])
def test_uninstalling_removes_the_job(
    user: str | None, cron_db: Database, owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    owner.execute("select idem.schedule()")
    cron_db.psql(ROOT / "sql" / "uninstall.sql", user=user)
    assert jobs(admin) == []


def test_downgrading_to_base_removes_the_job(
    cron_db: Database, owner: psycopg.Connection, admin: psycopg.Connection
) -> None:
    owner.execute("select idem.schedule()")
    migrate.downgrade(cron_db.dsn_of(OWNER), "base")
    assert jobs(admin) == []


def test_the_statements_for_another_database_schedule_the_job_from_here(
    db: Database, admin: psycopg.Connection
) -> None:
    with pytest.raises(errors.FeatureNotSupported) as refusal:
        db.connect(autocommit=True).execute("select idem.schedule()")
    detail = str(refusal.value.diag.message_detail)
    for (statement,) in admin.execute("select jsonb_array_elements_text(%s::jsonb -> 'statements')", [detail]):
        admin.execute(statement.encode())

    assert admin.execute("select database, command from cron.job order by jobid").fetchall() == [
        (db.name, COMMAND),
        ("postgres", admin.execute("select command from cron.job order by jobid desc limit 1").fetchone()[0]),
    ]
    record = (
        "insert into cron.job_run_details (database, username, command, start_time, end_time)"
        " values (%s, current_user, %s, now() - %s::interval, now() - %s::interval)"
    )
    for database, age in [(db.name, "8 days"), (db.name, "6 days"), ("other", "8 days")]:
        admin.execute(record, [database, COMMAND, age, age])
    for (trim,) in admin.execute("select command from cron.job where command like 'delete%'").fetchall():
        admin.execute(trim.encode())
    assert admin.execute(
        "select database, end_time < now() - interval '7 days' from cron.job_run_details order by 1"
    ).fetchall() == sorted([(db.name, False), ("other", True)])

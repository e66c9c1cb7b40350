"""plpgsql_check over every PL/pgSQL function, with all its warnings."""

import pytest

from tests.support.database import ROOT, Database

pytestmark = pytest.mark.parts

CITUS = ROOT / "tests" / "pgtap" / "citus.psql"
# What idem.schedule, purge and health know of pg_cron, which is not in this database, and what idem.distribute makes.
CRON = """
create schema cron;
create table cron.job (jobid bigint, command text, database text, username text, active boolean, jobname name);
create table cron.job_run_details (
    jobid bigint, runid bigint, status text, return_message text,
    command text, database text, username text, start_time timestamptz, end_time timestamptz
);
create function cron.schedule(text, text, text) returns bigint return 1;
create function cron.unschedule(bigint) returns boolean return true;
create table idem_private.policy_draft (like idem_private.policy including defaults);
"""

FINDINGS = """
select p.oid::regprocedure || coalesce(' line ' || c.lineno, '') || ': ' || c.level || ': ' || c.message
    || coalesce(' (' || c.detail || ')', '')
from pg_proc as p
inner join pg_language as l on p.prolang = l.oid and l.lanname = 'plpgsql'
left join pg_trigger as t on t.tgfoid = p.oid and not t.tgisinternal
-- its trigger is made by idem.distribute
left join (values ('idem_private.write_policy'::regproc, 'idem.policies'::regclass)) as w (function, view)
    on p.oid = w.function
cross join lateral plpgsql_check_function_tb(p.oid, coalesce(t.tgrelid, w.view, 0), all_warnings => true) as c
where p.pronamespace in ('idem'::regnamespace, 'idem_private'::regnamespace)
    -- calling a function that the caller names is what idem.run is for
    and (p.oid, c.message) is distinct from (to_regproc('idem.run')::oid, 'cannot determinate a result of dynamic SQL')
    -- names of objects from the catalog, and privileges from our own table
    and (p.oid::regproc::text, c.message) not in (
        ('idem.revoke_access', 'text type variable is not sanitized'),
        ('idem_private.give_access', 'text type variable is not sanitized'),
        ('idem.distribute', 'text type variable is not sanitized')
    )
    -- what is not there without Citus can only be named in a text
    and (
        c.message <> 'immutable expression without parameters found' or p.oid::regproc::text not in (
            'idem.distribute', 'idem_private.is_distributed', 'idem_private.refuse_without_citus',
            'idem_private.table_size'
        )
    )
order by 1
"""


def test_plpgsql_check_finds_nothing(db: Database) -> None:
    with db.connect(autocommit=True) as connection:
        connection.execute("create extension plpgsql_check")
        connection.execute(CRON)
        connection.execute("set allow_system_table_mods = on")
        connection.execute(CITUS.read_text().replace("set local", "set").encode())
        findings = [finding for (finding,) in connection.execute(FINDINGS)]
    assert not findings, "\n".join(findings)


def test_plpgsql_check_would_find_an_unused_variable(db: Database) -> None:
    with db.connect(autocommit=True) as connection:
        connection.execute("create extension plpgsql_check")
        connection.execute(
            "create function idem_private.wrong() returns int language plpgsql as"
            " 'declare idle int; begin return 1; end'"
        )
        findings = [finding for (finding,) in connection.execute(FINDINGS)]
    assert any(finding.startswith("idem_private.wrong()") and '"idle"' in finding for finding in findings)

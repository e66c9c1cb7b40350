"""What was changed by hand after an installation is named, and nothing else is."""

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from pyidem import migrate
from tests.migrations.support import owner_dsn
from tests.support.database import Database

Drift = list[tuple[str, str, str | None]]


def drift(database: Database) -> Drift:
    with psycopg.connect(owner_dsn(database)) as connection:
        return connection.execute("select object, problem, detail from idem_private.drift()").fetchall()


def change(database: Database, statement: str) -> None:
    with psycopg.connect(owner_dsn(database)) as connection:
        connection.execute(statement)


CHANGES = [
    ("drop index idem_private.reservation_expiry", "index idem_private.reservation_expiry", "missing"),
    ("drop function idem.version", "function idem.version()", "missing"),
    (
        "drop trigger reservation_completed on idem_private.reservation",
        "trigger reservation_completed on idem_private.reservation",
        "missing",
    ),
    (
        "alter table idem_private.testing drop column enabled_by",
        "table column idem_private.testing.enabled_by",
        "missing",
    ),
    ("drop view idem.keys", "view idem.keys", "missing"),
    ("drop table idem_private.testing", "table idem_private.testing", "missing"),
    ("create table idem.theirs (a int primary key)", "table idem.theirs", "extra"),
    ("create view idem_private.theirs as select 1 as one", "view idem_private.theirs", "extra"),
    (
        "create function idem.version(short boolean) returns text language sql as 'select null'",
        "function idem.version(boolean)",
        "extra",
    ),
    ("create type idem.theirs as enum ('a')", "type idem.theirs", "extra"),
    ("create index theirs on idem_private.reservation (policy)", "index idem_private.theirs", "extra"),
    (
        "alter table idem_private.reservation add column theirs int",
        "table column idem_private.reservation.theirs",
        "extra",
    ),
    ("alter type idem.response add attribute theirs int", "composite type column idem.response.theirs", "extra"),
    (
        "alter table idem_private.reservation add constraint theirs check (attempt > 0)",
        "table constraint theirs on idem_private.reservation",
        "extra",
    ),
    (
        "create rule theirs as on delete to idem_private.secret do also select 1",
        "rule theirs on idem_private.secret",
        "extra",
    ),
    ("create policy theirs on idem_private.secret", "policy theirs on idem_private.secret", "extra"),
    (
        'create collation idem.theirs from "C"',
        "collation idem.theirs",
        "extra",
    ),
    (
        "alter table idem_private.reservation disable trigger reservation_completed",
        "trigger reservation_completed on idem_private.reservation",
        'enabled was "O", is "D"',
    ),
    (
        "alter table idem_private.reservation alter column attempt drop not null",
        "table column idem_private.reservation.attempt",
        "not null was true, is false",
    ),
    (
        "alter table idem_private.unfinished alter column claims set default 7",
        "table column idem_private.unfinished.claims",
        'default was "0", is "7"',
    ),
    (
        "alter table idem_private.testing alter column enabled_by type text",
        "table column idem_private.testing.enabled_by",
        'collation was "\\"C\\"", is "\\"default\\""; type was "name", is "text"',
    ),
    ("alter table idem_private.testing set unlogged", "table idem_private.testing", 'persistence was "p", is "u"'),
    (
        "alter table idem_private.secret enable row level security",
        "table idem_private.secret",
        "row security was false, is true",
    ),
    (
        "grant select on idem_private.secret to public",
        "table idem_private.secret",
        "granted to public was false, is true",
    ),
    ("grant usage on schema idem to public", "schema idem", "granted to public was false, is true"),
    (
        "grant execute on function idem.version() to public",
        "function idem.version()",
        "granted to public was false, is true",
    ),
    (
        "alter function idem.version() security invoker",
        "function idem.version()",
        "security definer was true, is false",
    ),
    ("alter function idem.version() cost 7", "function idem.version()", "cost was 100, is 7"),
    ("alter function idem.version() volatile", "function idem.version()", 'volatility was "i", is "v"'),
    (
        "alter function idem.version() set search_path = public",
        "function idem.version()",
        'settings was ["search_path=pg_catalog, pg_temp"], is ["search_path=public"]',
    ),
    (
        "alter view idem.policies set (security_barrier)",
        "view idem.policies",
        'options was null, is ["security_barrier=true"]',
    ),
]


@pytest.mark.parametrize(("statement", "name", "said"), CHANGES, ids=[statement for statement, _, _ in CHANGES])
def test_a_change_by_hand_is_named(statement: str, name: str, said: str, db: Database) -> None:
    change(db, statement)
    problem = said if said in {"missing", "extra"} else "changed"

    assert drift(db) == [(name, problem, said if problem == "changed" else None)]


def test_a_function_with_another_body_is_named(db: Database) -> None:
    change(
        db,
        "create or replace function idem.version() returns text language sql immutable security definer"
        " set search_path = pg_catalog, pg_temp as 'select null'",
    )

    [(name, problem, detail)] = drift(db)
    assert (name, problem) == ("function idem.version()", "changed")
    assert detail is not None
    assert detail.startswith("body was ")


def test_a_view_with_another_query_is_named(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        [query] = connection.execute("select pg_get_viewdef('idem.policies'::regclass)").fetchone() or [""]
    change(db, f"create or replace view idem.policies as {query.rstrip(';')} where name <> 'default'")

    [(name, problem, detail)] = drift(db)
    assert (name, problem) == ("view idem.policies", "changed")
    assert detail is not None
    assert detail.startswith("query on ")


def test_the_query_of_a_view_is_not_compared_with_that_of_another_major_version(db: Database) -> None:
    change(
        db,
        "update idem_private.object set definition = (definition - ('query on ' || major))"
        """ || '{"query on 13": "as version 13 prints it"}'"""
        " from (select current_setting('server_version_num')::int / 10000 as major) as server where kind = 'view'",
    )

    assert drift(db) == []


def test_an_object_of_another_owner_is_named(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        connection.execute("alter function idem.version() owner to current_user")

    assert drift(db) == [("function idem.version()", "changed", "owned by the owner of the schema was true, is false")]


def test_an_extension_is_named_once_for_all_that_it_brings(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        connection.execute("create extension citext schema idem")

    assert drift(db) == [("extension citext", "extra", None)]


def test_what_belongs_to_a_missing_table_is_not_named_beside_it(db: Database) -> None:
    change(db, "drop table idem_private.testing")

    assert drift(db) == [("table idem_private.testing", "missing", None)]


def test_every_change_is_named_at_once(db: Database) -> None:
    change(
        db,
        "alter function idem.version() volatile; drop index idem_private.reservation_expiry;"
        " create table idem.theirs (a int);"
        " alter table idem_private.reservation disable trigger reservation_completed",
    )

    assert [(name, problem) for name, problem, _ in drift(db)] == [
        ("function idem.version()", "changed"),
        ("index idem_private.reservation_expiry", "missing"),
        ("table idem.theirs", "extra"),
        ("trigger reservation_completed on idem_private.reservation", "changed"),
    ]


def test_a_fresh_installation_has_none(db: Database) -> None:
    assert drift(db) == []


def test_what_administrators_may_set_is_none(db: Database) -> None:
    role = db.create_role()
    change(
        db,
        f"select idem.grant_client('{role}'); grant select on idem.keys to {role};"
        " alter table idem_private.reservation set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);"
        " insert into idem.policies (name) values ('theirs'); analyze idem_private.reservation",
    )
    with psycopg.connect(db.dsn) as connection:
        connection.execute("create table public.orders (id int); create view public.mine as select * from idem.keys")

    assert drift(db) == []


@pytest.mark.parametrize(
    "setting",
    [
        "search_path to public",
        "quote_all_identifiers to on",
        "datestyle to 'German'",
        "intervalstyle to 'sql_standard'",
        "timezone to 'Pacific/Chatham'",
        "extra_float_digits to 0",
    ],
)
def test_settings_of_the_session_make_none(setting: str, db: Database) -> None:
    change(db, f"alter database {db.name} set {setting}")

    assert drift(db) == []


def test_a_downgrade_and_an_upgrade_leave_none(empty_db: Database) -> None:
    for move in (migrate.upgrade, migrate.downgrade, migrate.upgrade):
        move(owner_dsn(empty_db))

    assert drift(empty_db) == []


@pytest.mark.parametrize("options", [[], ["--no-owner"]])
def test_a_dump_brings_it_along_and_a_restored_database_has_none(
    options: list[str], db: Database, empty_db: Database, tmp_path: Path
) -> None:
    change(db, "insert into idem.policies (name) values ('theirs')")
    dump = tmp_path / "dump"
    for program, *arguments in (
        ["pg_dump", "--format=custom", f"--file={dump}", "--schema=idem", "--schema=idem_private", db.name],
        ["pg_restore", "--exit-on-error", *options, f"--dbname={empty_db.name}", str(dump)],
    ):
        subprocess.run(
            [db.cluster.bindir / program, *arguments], check=True, env=os.environ | db.environment, capture_output=True
        )

    with psycopg.connect(empty_db.dsn) as connection:
        assert connection.execute("select count(*) > 100 from idem_private.object").fetchone() == (True,)
        assert connection.execute("select * from idem_private.drift()").fetchall() == []


def test_no_function_has_a_body_that_the_comparison_cannot_see(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        unseen = connection.execute(
            "select p.oid::regprocedure from pg_proc as p where p.prosqlbody is not null"
            " and p.pronamespace in ('idem'::regnamespace, 'idem_private'::regnamespace)"
        ).fetchall()

    assert unseen == []

"""Uninstalling removes everything of ours and nothing of others."""

import psycopg
import pytest

from pyidem import migrate
from tests.migrations.support import catalog
from tests.support.database import Database

UNINSTALL = migrate.resource("sql") / "uninstall.sql"

# What others may have built on ours, how it is named, and how it goes.
DEPENDENTS = [
    ("create view public.v as select * from idem.keys", "view v", "drop view public.v"),
    (
        "create materialized view public.m as select * from idem.keys",
        "materialized view m",
        "drop materialized view public.m",
    ),
    ("create table public.t (r idem.reservation)", "column r of table t", "drop table public.t"),
    ("create table public.t (r idem.reservation[])", "column r of table t", "drop table public.t"),
    (
        "create table public.t (v text default idem.version())",
        "default value for column v of table t",
        "drop table public.t",
    ),
    (
        "create table public.t (v text check (v = idem.version()))",
        "constraint t_v_check on table t",
        "drop table public.t",
    ),
    (
        'create table public.t (scope text collate "C", key text collate "C",'
        " foreign key (scope, key) references idem_private.reservation)",
        "constraint t_scope_key_fkey on table t",
        "drop table public.t",
    ),
    (
        "create table public.t (v text); create policy p on public.t using (v = idem.version())",
        "policy p on table t",
        "drop table public.t",
    ),
    (
        "create function public.f(r idem.reservation) returns void language sql as 'select null'",
        "function f(idem.reservation)",
        "drop function public.f",
    ),
    (
        "create function public.f() returns setof idem.reservation language sql as 'select null::idem.reservation'",
        "function f()",
        "drop function public.f",
    ),
    ("create function public.f() returns text return idem.version()", "function f()", "drop function public.f"),
    ("create domain public.d as idem.reservation", "type d", "drop domain public.d"),
    ("create type public.c as (r idem.reservation)", "column r of composite type c", "drop type public.c"),
    (
        "create function public.f() returns trigger language plpgsql as 'begin return null; end';"
        " create trigger theirs after insert on idem_private.reservation for each row execute function public.f()",
        "trigger theirs on table idem_private.reservation",
        "drop function public.f cascade",
    ),
    ("create table idem.theirs (a int)", "table idem.theirs", "drop table idem.theirs"),
    (
        "create function idem_private.theirs() returns int language sql as 'select 1'",
        "function idem_private.theirs()",
        "drop function idem_private.theirs",
    ),
    ("create extension citext schema idem", "extension citext", "drop extension citext"),
]


@pytest.mark.parametrize(("create", "name", "drop"), DEPENDENTS, ids=[name for _, name, _ in DEPENDENTS])
def test_it_refuses_while_something_depends_and_names_it(create: str, name: str, drop: str, db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("set search_path to public")
        connection.execute(create)
        before = catalog(db)

        with psycopg.connect(db.dsn_of(db.owner)) as owner, pytest.raises(psycopg.Error) as refused:
            owner.execute(statements())
        assert refused.value.sqlstate == "2BP01"
        # public is or is not named, as the server's search_path has it
        named = (refused.value.diag.message_detail or "").replace("public.", "").split("\n")
        assert named == [name]
        assert catalog(db) == before

        connection.execute(drop)
    db.psql(UNINSTALL, user=db.owner)
    assert catalog(db) == {}


def test_it_names_all_dependents_at_once(db: Database) -> None:
    with psycopg.connect(db.dsn) as connection:
        connection.execute("create view public.a as select * from idem.keys")
        connection.execute("create table public.b (r idem.reservation)")

    with pytest.raises(AssertionError, match=r"(?s)column r of table public\.b\nview public\.a"):
        db.psql(UNINSTALL, user=db.owner)


def test_it_leaves_nothing_however_the_keys_stand(db: Database) -> None:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute("select idem.reserve('scope', 'key', mode => 'leased', lease => '1 minute')")
        # parts of ours that a DBA may have added
        connection.execute("create index on idem_private.reservation (policy)")
        connection.execute("grant select on idem.keys to pg_monitor")
        connection.execute("alter default privileges in schema idem grant execute on functions to pg_monitor")
    db.psql(UNINSTALL, user=db.owner)

    with psycopg.connect(db.dsn) as connection:
        left = connection.execute(
            "select pg_describe_object(classid, objid, objsubid) from pg_depend"
            " where pg_describe_object(classid, objid, objsubid) like '%idem%'"
        ).fetchall()
    assert left == []
    assert catalog(db) == {}
    assert migrate.current(db.dsn) is None


def test_it_does_nothing_where_pyidem_is_not_installed(empty_db: Database) -> None:
    with psycopg.connect(empty_db.dsn) as connection:
        connection.execute("create schema idem")
        connection.execute("create table idem.of_somebody_else (a int)")
    before = catalog(empty_db)
    empty_db.psql(UNINSTALL, user=empty_db.owner)

    assert catalog(empty_db) == before


def test_it_removes_what_a_downgrade_to_base_left(db: Database) -> None:
    migrate.downgrade(db.dsn_of(db.owner))
    db.psql(UNINSTALL, user=db.owner)

    assert catalog(db) == {}


def statements() -> bytes:
    """The script without its psql command."""
    return UNINSTALL.read_bytes().replace(b"\\set ON_ERROR_STOP on\n", b"")

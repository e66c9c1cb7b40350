"""A role can do what its grant says, and nothing else, however it asks."""

from collections.abc import Iterable

import psycopg
import pytest

from tests.rights.conftest import GRANTS, Login
from tests.support.calls import lookup

RELATIONS = "select oid::regclass::text from pg_class where relnamespace = {} and relkind in ('r', 'v', 'm', 'p', 'S')"
PRIVATE = "'idem_private'::regnamespace"

# What each grant may do with the views.
VIEWS = {
    "idem.keys": {"monitor": {"select"}, "operator": {"select"}},
    "idem.policies": {"operator": {"select", "insert", "update", "delete"}},
}


def refusal(connection: psycopg.Connection, statement: str) -> str | None:
    """Return the SQLSTATE with which a statement is refused, and leave nothing of it behind."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement.encode())
    except psycopg.Error as error:
        return error.sqlstate
    return None


def names(admin: psycopg.Connection, query: str) -> list[str]:
    return [name for (name,) in admin.execute(query.encode())]


@pytest.mark.parametrize("grant", GRANTS)
def test_no_table_can_be_touched(grant: str, login: Login, admin: psycopg.Connection) -> None:
    somebody = login(grant)
    tables = names(admin, RELATIONS.format(PRIVATE))
    attempts = [
        statement
        for table in tables
        for statement in (
            f"table {table}",
            f"insert into {table} default values",
            f"delete from {table}",
            f"truncate {table}",
            f"lock table {table} in access share mode",
            f"copy {table} to stdout",
            f"create temp table mine (like {table})",
            f"create trigger t before update on {table} for each row"
            " execute function suppress_redundant_updates_trigger()",
            f"create index on {table} ((1))",
            f"comment on table {table} is 'mine'",
        )
    ]

    assert len(tables) >= 8
    assert {refusal(somebody, statement) for statement in attempts} == {"42501"}


@pytest.mark.parametrize("grant", GRANTS)
def test_a_view_can_be_used_as_granted(grant: str, login: Login, admin: psycopg.Connection) -> None:
    somebody = login(grant)
    for view in names(admin, RELATIONS.format("'idem'::regnamespace")):
        for privilege in ("select", "insert", "update", "delete", "truncate", "references", "trigger"):
            (has,) = one(somebody, "select has_table_privilege(%s, %s)", [view, privilege])
            assert has == (privilege in VIEWS[view].get(grant, set())), (view, privilege)


@pytest.mark.parametrize("grant", GRANTS)
def test_no_private_function_can_be_called(grant: str, login: Login, admin: psycopg.Connection) -> None:
    somebody = login(grant)
    functions = names(
        admin,
        "select format('select idem_private.%I(%s)', proname, array_to_string(array("
        " select 'null::' || format_type(t, null) from unnest(proargtypes::oid[]) as t), ', '))"
        f" from pg_proc where pronamespace = {PRIVATE} and prorettype <> 'trigger'::regtype",
    )

    assert len(functions) >= 40
    assert {refusal(somebody, call) for call in functions} == {"42501"}


def test_no_trigger_function_can_be_put_on_a_table_of_ones_own(login: Login, admin: psycopg.Connection) -> None:
    client = login()
    client.execute("create temp table mine (name text)")
    triggers = names(
        admin,
        f"select proname from pg_proc where pronamespace = {PRIVATE} and prorettype = 'trigger'::regtype",
    )

    assert len(triggers) >= 3
    for name in triggers:
        create = f"create trigger t before insert on mine for each row execute function idem_private.{name}()"
        assert refusal(client, create) == "42501"


def test_a_private_function_cannot_be_named_by_its_oid(login: Login, admin: psycopg.Connection) -> None:
    admin.execute(
        "create function idem_private.handler(args jsonb) returns idem.response language sql"
        " as 'select idem.json_response(200, ''{}'')'"
    )
    admin.execute("revoke all on function idem_private.handler from public")
    (oid,) = one(admin, "select 'idem_private.handler'::regproc::oid")
    client = login()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.execute("select idem.run('shop', 'k', null, %s::oid::regprocedure, '{}')", [oid])

    assert lookup(client, "k").outcome == "absent"


@pytest.mark.parametrize("grant", GRANTS)
def test_rights_and_testing_are_the_owners(grant: str, login: Login) -> None:
    somebody = login(grant)
    role = somebody.info.user
    calls = [
        *(f"idem.grant_{other}('{role}')" for other in GRANTS),
        f"idem.revoke_access('{role}')",
        f"idem.bind_scope('{role}', 'a')",
        f"idem.unbind_scope('{role}')",
        "idem.enable_testing()",
        "idem.disable_testing()",
    ]

    assert {refusal(somebody, f"select {call}") for call in calls} == {"42501"}


@pytest.mark.parametrize("grant", GRANTS)
def test_nothing_can_be_made_or_changed_in_the_schemas(grant: str, login: Login) -> None:
    somebody = login(grant)
    statements = [
        "create table idem.t (a int)",
        "create view idem.v as select 1",
        "create function idem.f() returns int language sql as 'select 1'",
        "create or replace function idem.version() returns text language sql as 'select null'",
        "create type idem.c as (a int)",
        "create operator idem.= (function = texteq, leftarg = text, rightarg = text)",
        "create cast (idem.reservation as text) with inout",
        "alter function idem.version() security invoker",
        "alter type idem.reservation add attribute more text",
        "alter view idem.keys set (security_barrier = false)",
        "drop function idem.version()",
        "drop view idem.keys",
        "alter schema idem rename to mine",
        "grant execute on function idem.version() to public",
        "grant usage on schema idem to public",
        "comment on schema idem is 'mine'",
        "create table idem_private.t (a int)",
    ]

    refused = {statement: refusal(somebody, statement) for statement in statements}
    # GRANT of what one may not pass on is a warning where one has the privilege itself.
    assert refused.pop("grant execute on function idem.version() to public") in {None, "42501"}
    assert refused.pop("grant usage on schema idem to public") in {None, "42501"}
    assert set(refused.values()) == {"42501"}
    somebody.execute("grant execute on function idem.version() to public")
    somebody.execute("grant usage on schema idem to public")
    assert one(somebody, "select has_function_privilege('public', 'idem.version()', 'execute')") == (False,)
    assert one(somebody, "select has_schema_privilege('public', 'idem', 'usage')") == (False,)


def test_a_member_has_what_its_group_has_and_no_more(login: Login, admin: psycopg.Connection) -> None:
    group, member = login("client"), login("monitor")
    admin.execute(f'grant "{group.info.user}" to "{member.info.user}"')

    assert lookup(member, "k").outcome == "absent"
    assert refusal(member, "select idem.claim_lapsed()") == "42501"
    assert refusal(member, f"set role {group.info.user}; select 1 from idem.keys") == "42501"


def test_what_it_was_granted_is_gone_after_revoke_access(login: Login, admin: psycopg.Connection) -> None:
    client = login()
    role = client.info.user
    assert lookup(client, "k").outcome == "absent"
    admin.execute("select idem.revoke_access(%s)", [role])
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        lookup(client, "k")

    assert refusal(admin, f'drop role "{role}"') is None


def one(connection: psycopg.Connection, query: str, parameters: Iterable[object] = ()) -> tuple[object, ...]:
    row = connection.execute(query.encode(), list(parameters)).fetchone()
    assert row is not None
    return row

"""Nothing that a caller makes in the way of names changes what a call does, or runs in the place of what was meant."""

from typing import LiteralString

import psycopg
import pytest

from tests.rights.conftest import Login

TABLES = [
    "reservation", "unfinished", "policy", "retired_policy", "secret", "testing", "event", "object", "access",
    "scope_binding", "alembic_version", "pg_proc", "pg_class", "pg_roles", "pg_database", "pg_auth_members",
    "pg_namespace", "policies", "keys",
]  # fmt: skip
TYPES = ["text", "name", "uuid", "jsonb", "json", "interval", "bytea", "timestamptz", "regprocedure", "bool", "int4"]

# Functions of pg_catalog whose names occur in ours.
FUNCTIONS: LiteralString = """
select distinct p.proname, oidvectortypes(p.proargtypes), format_type(p.prorettype, null)
from pg_proc as p
where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and not p.proretset and p.provariadic = 0
    and not exists (
        select from unnest(array[p.prorettype] || p.proargtypes::oid[]) as used
        inner join pg_type as t on t.oid = used and t.typtype = 'p'
    )
    and exists (
        select from pg_proc as ours
        where ours.pronamespace in ('idem'::regnamespace, 'idem_private'::regnamespace)
            and strpos(ours.prosrc, p.proname || '(') > 0
    )
"""
OPERATORS: LiteralString = """
select oprname, format_type(oprleft, null), format_type(oprright, null), format_type(oprresult, null)
from pg_operator
where oprnamespace = 'pg_catalog'::regnamespace and oprname = any(array[
    '=', '<>', '<', '>', '<=', '>=', '||', '+', '-', '~', '!~', '->', '->>', '#>'
])
and array[oprleft, oprright] <@ array[
    'text', 'uuid', 'bytea', 'jsonb', 'int', 'bigint', 'boolean', 'interval', 'timestamptz', 'oid', 'name',
    'xid8', 'text[]'
]::regtype[]::oid[]
"""
# Each with a value of its type for every argument, of which most are refused.
CALLS = """
select case p.prokind when 'p' then 'call ' else 'select ' end || p.oid::regproc || '(' || array_to_string(array(
    select
        quote_nullable(case t.typname
            when 'text' then 'a'
            when '_text' then '{a}'
            when 'int4' then '1'
            when 'bytea' then 'a'
            when 'jsonb' then '[]'
            when 'response' then '(200,[],a)'
            when 'uuid' then 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
        end) || '::' || t.typnamespace::regnamespace || '.' || t.typname
    from unnest(p.proargtypes::oid[]) with ordinality as argument (type, position)
    inner join pg_type as t on t.oid = argument.type
    order by argument.position
), ', ') || ')'
from pg_proc as p
where p.pronamespace = 'idem'::regnamespace
"""


def shadow(caller: psycopg.Connection, admin: psycopg.Connection) -> str:
    """Put a false friend before everything in the caller's search_path, and return the schema that holds it."""
    schema = caller.info.user
    admin.execute(f'create schema "{schema}" authorization "{schema}"'.encode())
    caller.execute(f'set search_path = "{schema}"'.encode())
    caller.execute("create table called (function text, by text)")
    caller.execute(
        "create function pay(args jsonb) returns idem.response language sql as $$select idem.json_response(201, '{}')$$"
    )
    caller.execute("create function pg_temp.called(name text) returns void language sql as 'select null'")

    def friend(name: str, arguments: str, returns: str, shows: str) -> None:
        caller.execute(
            f'create function "{name}"({arguments}) returns {returns} language plpgsql as $$'
            f'begin insert into "{schema}".called values ($q${shows}$q$, current_user); return null; end$$'.encode()
        )

    functions = admin.execute(FUNCTIONS).fetchall()
    operators = admin.execute(OPERATORS).fetchall()
    assert len(functions) > 40
    assert len(operators) > 40
    for name, arguments, returns in functions:
        friend(name, arguments, returns, f"{name}({arguments})")
    for number, (name, left, right, returns) in enumerate(operators):
        friend(f"operator_{number}", f"{left}, {right}", returns, f"{left} {name} {right}")
        caller.execute(
            f"create operator {name} (function = operator_{number}, leftarg = {left}, rightarg = {right})".encode()
        )
    for place in (f'"{schema}"', "pg_temp"):
        for table in TABLES:
            caller.execute(f"create table {place}.{table} (scope text, key text, name text, token uuid)".encode())
        for type_ in TYPES:
            caller.execute(f"create type {place}.{type_} as enum ('forged')".encode())
    caller.execute(f'set search_path = pg_temp, "{schema}", pg_catalog'.encode())
    caller.execute("select 'a'::pg_catalog.text = 'b'::pg_catalog.text, pg_catalog.now() < pg_catalog.now()")
    deceived = admin.execute(f'select function from "{schema}".called order by 1'.encode()).fetchall()
    assert deceived == [("text = text",), ("timestamp with time zone < timestamp with time zone",)]
    admin.execute(f'truncate "{schema}".called'.encode())
    return schema


def answers(client: psycopg.Connection, scope: str, handler: str) -> list[tuple[object, ...]]:
    """Make the calls of an application, and return what came back."""
    token = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
    calls = [
        "select outcome, attempt, token from idem.reserve('{scope}', 'a', '\\x01', 'leased', '1 hour',"
        " '{\"/a\": \"h\"}', '1', '{token}')",
        "select outcome, mismatched from idem.reserve('{scope}', 'a', '\\x02', fields => '{\"/a\": \"i\"}')",
        "select idem.checkpoint('{scope}', 'a', '{token}', 'half', '2')",
        "select idem.extend('{scope}', 'a', '{token}') is not null",
        "select idem.complete('{scope}', 'a', '{token}', 201, '[[\"a\", \"b\"]]', 'x')",
        "select outcome, status, headers, body from idem.reserve('{scope}', 'a', '\\x01')",
        "select outcome, status, body from idem.lookup('{scope}', 'a')",
        "select outcome from idem.reserve('{scope}', 'b', mode => 'leased', token => '{token}')",
        "select idem.defer('{scope}', 'b', '{token}')",
        "select outcome from idem.reserve('{scope}', 'b')",
        "select idem.release('{scope}', 'b', '{token}')",
        "select idem.downstream_key('{scope}', 'a') is not null",
        "select outcome, status, body from idem.run('{scope}', 'c', '\\x01', '{handler}', '{}')",
        "select outcome, status, body from idem.run('{scope}', 'c', '\\x01', '{handler}', '{}')",
        "select idem.once('{scope}', 'd')",
        "select ordinal, key, outcome from idem.once_many('{scope}', '{d,e}')",
        "select idem.once_undo('{scope}', '{d}')",
        "select outcome, status from idem.http_reserve('{scope}', '\"f\"', 'POST', '/a', '{\"a\": 1}',"
        " 'application/json', 'leased', token => '{token}')",
        "select idem.http_complete('{scope}', 'f', '{token}', 201, '[]', 'c')",
        "select outcome, status, headers, body from idem.http_reserve('{scope}', '\"f\"', 'POST', '/a', '{\"a\": 1.0}',"
        " 'application/json')",
    ]
    values = {"{scope}": scope, "{token}": token, "{handler}": handler}
    rows: list[tuple[object, ...]] = []
    for call in calls:
        text = call
        for name, value in values.items():
            text = text.replace(name, value)
        rows += client.execute(text.encode()).fetchall()
    return rows


def test_an_application_gets_the_same_answers_among_false_friends(login: Login, admin: psycopg.Connection) -> None:
    plain, surrounded = login(), login()
    admin.execute(
        "create function public.pay(args jsonb) returns idem.response language sql"
        " as $$select idem.json_response(201, '{}')$$"
    )
    schema = shadow(surrounded, admin)

    expected = answers(plain, "plain", "public.pay(jsonb)")
    got = answers(surrounded, "surrounded", f'"{schema}".pay(pg_catalog.jsonb)')
    assert len(expected) == 21
    assert got == expected
    assert admin.execute(f'select * from "{schema}".called'.encode()).fetchall() == []


@pytest.mark.parametrize("grant", ["client", "resolver", "monitor", "operator"])
def test_no_call_runs_a_false_friend(grant: str, login: Login, admin: psycopg.Connection) -> None:
    """Whatever the call makes of its arguments, which are of every type and often refused."""
    somebody = login(grant)
    schema = shadow(somebody, admin)
    calls = admin.execute(CALLS + f" and has_function_privilege('{schema}', p.oid, 'execute')").fetchall()

    outcomes = []
    for (call,) in calls:
        try:
            somebody.execute(call.encode())
            outcomes.append(None)
        except psycopg.Error as error:
            outcomes.append(error.sqlstate)
    if grant in {"monitor", "operator"}:
        somebody.execute("select outcome, expires_at from idem.keys where scope operator(pg_catalog.=) 'a'")
    assert None in outcomes
    assert not {"42883", "42704", "42601"} & set(outcomes), dict(zip(calls, outcomes, strict=True))
    assert admin.execute(f'select * from "{schema}".called'.encode()).fetchall() == []

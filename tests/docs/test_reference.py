"""The SQL reference says what the catalog says, and leaves nothing out."""

import re
from typing import Any

import psycopg
import pytest

from tests.docs.blocks import REFERENCE, fences, rows, sections
from tests.support.database import ROOT

SOURCES = [path.read_text() for path in sorted((ROOT / "sql").rglob("*.sql"))]
SECTIONS = sections(REFERENCE)
TYPES = ["idem.reservation", "idem.lapsed_reservation", "idem.response", "idem.http_reservation"]
GRANTS = ["client", "resolver", "monitor", "operator"]


SIGNATURES = {
    name: block for name in SECTIONS for block in re.findall(r"```signature\n(.*?)```", SECTIONS[name], re.DOTALL)
}
COMMON = "Conventions"

# What the text of the functions leads to and no call can meet.
NEVER_RAISED = {
    ("idem.http_reserve", "IK007"): "it makes the fields itself, and never too many",
    ("idem.policy_document", "IK001"): "the key that it checks is its own",
    ("idem.run", "IK003"): "what it completes, it has reserved",
    ("idem.run", "IK004"): "what it completes, it has reserved",
    ("idem.run", "IK007"): "it has no fields",
}
# What Postgres raises itself, where the function is named for it; the first two may come from any call.
RAISED_BY_POSTGRES = {"42501", "40001", "42846", "42704", "2D000"}


def query(connection: psycopg.Connection, text: str) -> list[tuple[Any, ...]]:
    return connection.execute(text.encode()).fetchall()


def bare(cell: str) -> str:
    return cell.removeprefix("`").removesuffix("`")


def plain(signature: str) -> str:
    """Return a signature in lower case, its defaults without casts, its blanks single and none inside brackets."""
    signature = re.sub(r"::[a-z ]+(\[\])?", "", signature.lower())
    return re.sub(r"\s+", " ", signature).replace("( ", "(").replace(" )", ")").strip()


def test_every_function_view_and_type_has_a_section(tx: psycopg.Connection) -> None:
    objects = query(
        tx,
        "select 'idem.' || proname from pg_proc where pronamespace = 'idem'::regnamespace"
        " union all select 'idem.' || relname from pg_class where relnamespace = 'idem'::regnamespace",
    )

    assert {name for name in SECTIONS if name.startswith("idem.")} == {name for (name,) in objects}


def test_signatures_are_those_of_the_catalog(tx: psycopg.Connection) -> None:
    catalog = query(
        tx,
        "select format('idem.%s(%s)', proname, replace(pg_get_function_arguments(oid), 'IN ', ''))"
        " || case when prokind = 'p' then '' else ' returns ' || pg_get_function_result(oid) end"
        " from pg_proc where pronamespace = 'idem'::regnamespace",
    )

    shown = [plain(block.text) for block in fences(REFERENCE, "signature")]
    assert sorted(shown) == sorted(plain(signature) for (signature,) in catalog)


@pytest.mark.parametrize("name", [*TYPES, "idem.policies", "idem.keys"])
def test_columns_are_those_of_the_catalog(name: str, tx: psycopg.Connection) -> None:
    catalog = query(
        tx,
        f"select attname from pg_attribute where attrelid = '{name}'::regclass and attnum > 0 order by attnum",
    )

    assert [bare(row[0]) for row in rows(SECTIONS[name])] == [column for (column,) in catalog]


@pytest.mark.parametrize("name", TYPES)
def test_types_of_columns_are_those_of_the_catalog(name: str, tx: psycopg.Connection) -> None:
    catalog = query(
        tx,
        "select attname, format_type(atttypid, atttypmod) from pg_attribute"
        f" where attrelid = '{name}'::regclass and attnum > 0",
    )

    assert {bare(row[0]): bare(row[1]) for row in rows(SECTIONS[name])} == dict(catalog)


@pytest.mark.parametrize(
    ("column", "default"),
    # the list of headers is too long for a table
    [(bare(row[0]), bare(row[1])) for row in rows(SECTIONS["idem.policies"]) if bare(row[0]) != "drop_headers"],
)
def test_the_default_of_a_policy_is_as_printed(column: str, default: str, tx: psycopg.Connection) -> None:
    as_printed = f"select {column} is not distinct from {default} from idem.policies where name = 'default'"

    assert query(tx, as_printed) == [(True,)]


def test_every_error_code_is_listed_with_its_sqlstate() -> None:
    listed = {(bare(row[0]), bare(row[1])) for row in rows(SECTIONS["Errors"])}

    assert listed == {pair for source in SOURCES for pair in codes(source)}


@pytest.mark.parametrize("grant", GRANTS)
def test_what_a_grant_gives_is_as_printed(grant: str, tx: psycopg.Connection) -> None:
    tx.execute("create role somebody")
    tx.execute(f"select idem.grant_{grant}('somebody')")

    granted = query(
        tx,
        "select 'idem.' || proname, has_function_privilege('somebody', oid, 'execute') from pg_proc"
        " where pronamespace = 'idem'::regnamespace"
        " union all select 'idem.' || relname, has_table_privilege('somebody', oid, 'select, insert, update, delete')"
        " from pg_class where relnamespace = 'idem'::regnamespace and relkind = 'v'",
    )

    column = 1 + GRANTS.index(grant)
    assert {bare(row[0]): row[column] for row in rows(SECTIONS["Rights"])} == {
        name: "yes" if allowed else "no" for name, allowed in granted
    }


@pytest.mark.parametrize("function", SIGNATURES)
def test_every_argument_is_explained(function: str) -> None:
    arguments = argument_names(SIGNATURES[function])
    explained = set(re.findall(r"`(\w+)`", prose(function))) | {
        name for row in rows(SECTIONS[COMMON]) for name in re.findall(r"`(\w+)`", row[0])
    }

    assert [name for name in arguments if name not in explained] == []


@pytest.mark.parametrize("function", SIGNATURES)
def test_every_outcome_is_explained(function: str) -> None:
    result = plain(SIGNATURES[function]).partition(" returns ")[2]
    text = prose(function)

    if result == "boolean":
        assert "true" in text
    if result == "boolean" and "always returns true" not in text:
        assert "false" in text
    if result in {"idem.reservation", "idem.http_reservation"}:
        named = {bare(row[0]) for row in rows(text)}
        assert {"in_progress"} <= named or "idem.reserve" in text


@pytest.mark.parametrize("function", SIGNATURES)
def test_every_function_has_an_example_that_is_executed(function: str) -> None:
    typed = [
        line
        for block in re.findall(r"^```psql.*?\n(.*?)^```", SECTIONS[function], re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
        if re.match(r"shop\S{1,2}[>#] ", line)
    ]

    assert any(f"{function}(" in line for line in typed)


@pytest.mark.parametrize("function", SIGNATURES)
def test_the_errors_of_a_function_are_those_that_its_text_leads_to(function: str) -> None:
    said = re.search(r"^Errors: (.*?)(?:\n\n|\Z)", prose(function), re.MULTILINE | re.DOTALL)
    assert said is not None
    listed = set(re.findall(r"\b(?:IK\d{3}|[0-9][0-9A-Z]{4})\b", said[1]))
    reached = {code for code in reachable(function, set()) if (function, code) not in NEVER_RAISED}

    assert listed - RAISED_BY_POSTGRES == reached - RAISED_BY_POSTGRES


def test_nothing_is_excused_that_is_not_there() -> None:
    assert [pair for pair in NEVER_RAISED if pair[1] not in reachable(pair[0], set())] == []


def prose(function: str) -> str:
    """Return the section of a function without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", SECTIONS[function], flags=re.DOTALL | re.MULTILINE)


def argument_names(signature: str) -> list[str]:
    inside = plain(signature).partition("(")[2].partition(" returns ")[0]
    return re.findall(r"(?:^|, )(\w+) (?:\w|\.)+", re.sub(r"'[^']*'", "''", inside).removesuffix(")"))


def reachable(function: str, seen: set[str]) -> set[str]:
    """Return the SQLSTATEs that a function raises, or whatever it calls, by the text of their bodies."""
    if function in seen:
        return set()
    seen.add(function)
    found = set(re.findall(r"errcode = '(\w+)'", BODIES[function]))
    # what is in quotes is text for people, or for pg_cron
    statements = re.sub(r"'(?:[^']|'')*'", "''", BODIES[function])
    called = set(re.findall(r"\bidem(?:_private)?\.\w+(?=\()", statements)) & BODIES.keys()
    return found.union(*(reachable(name, seen) for name in called))


def bodies() -> dict[str, str]:
    """Return the text of each function, by its name, without comments."""
    found = {}
    for source in SOURCES:
        bare_source = re.sub(r"^ *--.*", "", source, flags=re.MULTILINE)
        for made in re.finditer(
            r"^create or replace (?:function|procedure) (idem(?:_private)?\.\w+)\(.*?(?=^comment on|\Z)",
            bare_source,
            re.DOTALL | re.MULTILINE,
        ):
            found[made[1]] = made[0]
    return found


BODIES = bodies()


def codes(source: str) -> set[tuple[str, str]]:
    """Return the pairs of SQLSTATE and code that a source raises, where DETAIL has a code."""
    found = set()
    for raised in source.split("raise exception using")[1:]:
        statement = raised.partition(";")[0]
        sqlstate = re.search(r"errcode = '(\w+)'", statement)
        code = re.search(r"'code', ('(\w+)'|problem)", statement)
        assert sqlstate is not None, statement
        assert code is not None, statement
        problems = [code[2]] if code[2] else re.findall(r"then '([a-z_]+)'", source.partition("raise exception")[0])
        found |= {(sqlstate[1], problem) for problem in problems}
    return found

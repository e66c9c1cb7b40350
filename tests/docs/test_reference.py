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

"""Every statement on a table that idem.distribute spreads, against what Citus is known to refuse.

Checked without Citus, by the text of the functions: its planner looks at one statement at a time, and refuses some by
their shape alone, whatever the data.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pglast import ast, parse_plpgsql, parse_sql
from pglast.visitors import Visitor

from tests.support.database import ROOT, Database

TABLES = {"reservation", "unfinished", "event"}
# These run on tables that are not distributed: triggers, and what has a counterpart for a cluster.
NOT_THERE = {
    "idem_private.note_left_behind", "idem_private.purge_events", "idem_private.require_completion",
}  # fmt: skip


@pytest.fixture(scope="module")
def volatility(shared_db: Database) -> dict[str, str]:
    """The volatility of every function by its name, the worst where there are several: i, s or v."""
    with psycopg.connect(shared_db.dsn) as connection:
        rows = connection.execute("select proname, max(provolatile) from pg_proc group by proname").fetchall()
    return dict(rows)


class Calls(Visitor):
    """The functions that an expression calls, each with whether a column is among its arguments."""

    def __init__(self, columns_of: set[str]) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []
        self._columns_of = columns_of

    def visit_FuncCall(self, _: Any, node: ast.FuncCall) -> None:  # noqa: N802 - named by pglast
        columns = Columns(self._columns_of)
        for argument in node.args or ():
            columns(argument)
        self.found.append((node.funcname[-1].sval, bool(columns.found)))


class Columns(Visitor):
    """The columns of some tables, by alias, that an expression refers to."""

    def __init__(self, aliases: set[str]) -> None:
        super().__init__()
        self.found: list[str] = []
        self.whole_rows: list[str] = []
        self._aliases = aliases

    def visit_ColumnRef(self, _: Any, node: ast.ColumnRef) -> None:  # noqa: N802
        first = node.fields[0]
        if isinstance(first, ast.String) and first.sval in self._aliases:
            self.found.append(first.sval)
            if len(node.fields) == 1:
                self.whole_rows.append(first.sval)


class Statements(Visitor):
    """What is wrong with the statements of one text."""

    def __init__(self, volatility: dict[str, str]) -> None:
        super().__init__()
        self.problems: list[str] = []
        self._volatility = volatility

    def visit_UpdateStmt(self, _: Any, node: ast.UpdateStmt) -> None:  # noqa: N802
        self._modification(node.relation, [*node.targetList, node.whereClause], node.whereClause)

    def visit_DeleteStmt(self, _: Any, node: ast.DeleteStmt) -> None:  # noqa: N802
        self._modification(node.relation, [node.whereClause], node.whereClause)

    def visit_SelectStmt(self, _: Any, node: ast.SelectStmt) -> None:  # noqa: N802
        aliases = distributed(node.fromClause)
        if not aliases:
            return
        if node.lockingClause and not all(pinned(node.whereClause, alias) for alias in aliases):
            self.problems.append("locks rows of more than one scope")
        columns = Columns(aliases)
        for part in (node.targetList, node.whereClause, node.sortClause):
            if part is not None:
                columns(part)
        if columns.whole_rows:
            self.problems.append(f"hands on a whole row: {columns.whole_rows[0]}")

    def visit_RangeSubselect(self, _: Any, node: ast.RangeSubselect) -> None:  # noqa: N802
        query = node.subquery
        if node.lateral and distributed(query.fromClause) and (query.limitCount or query.limitOffset):
            self.problems.append("limits a lateral subselect")

    def _modification(self, relation: ast.RangeVar, expressions: list[Any], where: Any) -> None:
        alias = alias_of(relation)
        if relation.relname not in TABLES:
            return
        if not pinned(where, alias):
            self.problems.append("writes rows of more than one scope")
        calls = Calls({alias})
        for expression in expressions:
            if expression is not None:
                calls(expression)
        for name, of_columns in calls.found:
            kind = self._volatility.get(name, "v")
            if kind == "v" or (kind == "s" and of_columns):
                self.problems.append(f"writes with {name}, which is not immutable")


def alias_of(table: ast.RangeVar) -> str:
    name: str = table.alias.aliasname if table.alias else table.relname
    return name


def distributed(from_clause: Any) -> set[str]:
    """The aliases of distributed tables in the FROM clause itself."""
    found: set[str] = set()
    rest = list(from_clause or ())
    while rest:
        item = rest.pop()
        if isinstance(item, ast.JoinExpr):
            rest += [item.larg, item.rarg]
        elif isinstance(item, ast.RangeVar) and item.schemaname == "idem_private" and item.relname in TABLES:
            found.add(alias_of(item))
    return found


def pinned(where: Any, alias: str) -> bool:
    """Whether the condition says which scope it is."""
    if isinstance(where, ast.BoolExpr) and where.boolop.name == "AND_EXPR":
        return any(pinned(part, alias) for part in where.args)
    if not isinstance(where, ast.A_Expr) or where.kind.name != "AEXPR_OP" or where.name[-1].sval != "=":
        return False
    column = where.lexpr
    return isinstance(column, ast.ColumnRef) and [f.sval for f in column.fields] == [alias, "scope"]


def functions() -> Iterator[tuple[str, list[str]]]:
    """Each function that runs on a cluster, with its SQL."""
    for path in sorted((ROOT / "sql").rglob("*.sql")):
        text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("\\"))
        for statement in parse_sql(text):
            created = statement.stmt
            if not isinstance(created, ast.CreateFunctionStmt):
                continue
            name = ".".join(part.sval for part in created.funcname)
            options = {option.defname: option.arg for option in created.options}
            body = options["as"][0].sval
            if name in NOT_THERE or not any(f"idem_private.{table}" in body for table in TABLES):
                continue
            if options["language"].sval == "sql":
                yield name, [body]
            else:
                yield name, list(queries(plain(definition(text, statement), created.funcname[-1].sval)))


def plain(text: str, name: str) -> str:
    """The same for a parser that knows no types, and no parameter by its qualified name where it is assigned to."""
    text = re.sub(r' collate "C"(?= :=|;$)', "", text, flags=re.MULTILINE)
    text = re.sub(rf"\b{name}\.(?=\w+ :=)|(?<=into strict ){name}\.|(?<=into ){name}\.", "", text)
    return re.sub(r"(?<=\w )idem(_private)?\.\w+(?=;| :=)", "record", text)


def definition(text: str, statement: ast.RawStmt) -> str:
    """The text of one statement of a file."""
    encoded = text.encode()[statement.stmt_location :]
    return encoded[: statement.stmt_len or None].decode()


def queries(text: str) -> Iterator[str]:
    """The statements of a PL/pgSQL function, but for those of a branch for a single server."""
    for function in parse_plpgsql(text):
        yield from reached(function["PLpgSQL_function"]["action"])


def reached(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for number, item in enumerate(node):
            branch = item.get("PLpgSQL_stmt_if") if isinstance(item, dict) else None
            condition = json.dumps(branch["cond"]) if branch else ""
            if "not idem_private.is_distributed()" in condition:
                continue
            yield from reached(item)
            if "idem_private.is_distributed()" in condition and "PLpgSQL_stmt_return" in json.dumps(branch):
                del node[number + 1 :]
                return
    elif isinstance(node, dict):
        if isinstance(query := node.get("query"), str):
            yield query
        for value in node.values():
            yield from reached(value)


def problems(sql: str, volatility: dict[str, str]) -> list[str]:
    visitor = Statements(volatility)
    expression = re.sub(r"^\s*[\w.]+\s*:=", "", sql)
    is_statement = re.match(r"(?i)\s*(select|insert|update|delete|with)\b", expression)
    visitor(parse_sql(expression if is_statement else f"select {expression}"))
    return visitor.problems


def test_no_statement_has_a_shape_that_citus_refuses(volatility: dict[str, str]) -> None:
    found = [
        f"{name}: {problem}" for name, sqls in functions() for sql in sqls for problem in problems(sql, volatility)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        (
            "update idem_private.event as e set at = clock_timestamp() where e.scope = a.b",
            "writes with clock_timestamp",
        ),
        ("update idem_private.event as e set at = now() where e.scope = a.b", ""),
        ("delete from idem_private.event as e where e.scope = s and age(e.at) > x", "writes with age"),
        (
            "delete from idem_private.event as e using other as o where o.scope = e.scope",
            "writes rows of more than one",
        ),
        ("select e.key from idem_private.event as e where e.key = k for update", "locks rows of more than one scope"),
        ("select e.key from idem_private.event as e where e.scope = s for update skip locked", ""),
        ("select f(e) from idem_private.event as e where e.scope = s", "hands on a whole row"),
        (
            "select from o cross join lateral (select from idem_private.event as e where e.scope = o.s limit 1) as l",
            "limits a lateral subselect",
        ),
    ],
)
def test_the_check_finds_what_it_is_for(sql: str, problem: str, volatility: dict[str, str]) -> None:
    found = problems(sql, volatility)
    assert [p for p in found if not p.startswith(problem)] == [] if problem else found == []
    assert bool(found) == bool(problem)


def test_what_is_left_out_exists() -> None:
    sources = {path.stem for path in Path(ROOT / "sql" / "private").glob("*.sql")}
    assert {name.removeprefix("idem_private.") for name in NOT_THERE} <= sources

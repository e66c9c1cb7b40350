"""What a file of sql/ makes: which objects, how each is dropped, and what `create or replace` cannot change in it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pglast import ast, parse_sql
from pglast.stream import RawStream

_OUT_ONLY = {"o", "t"}
_REPEATABLE = (ast.CreateFunctionStmt, ast.ViewStmt, ast.CreateTrigStmt, ast.CommentStmt, ast.GrantStmt)


@dataclass(frozen=True)
class Object:
    """One object that a statement makes.

    ``fixed`` may not differ for `create or replace` to do, ``columns`` may only be added to at the end, and no default
    may go.
    """

    kind: str
    name: str
    drop: str
    text: str
    or_replace: bool = False
    fixed: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()
    defaults: frozenset[int] = frozenset()

    @property
    def identity(self) -> tuple[str, str]:
        """What two versions of one object have in common."""
        return self.kind, self.name

    def can_become(self, later: "Object") -> bool:
        """Tell whether the statement of the later version does, without a drop before it."""
        return (
            later.or_replace
            and self.fixed == later.fixed
            and self.columns == later.columns[: len(self.columns)]
            and self.defaults <= later.defaults
        )

    def is_same_as(self, other: "Object | None") -> bool:
        """Tell whether the other's statement is the same, but for white space around it."""
        return other is not None and self.text.strip() == other.text.strip()


def objects(text: str) -> list[Object]:
    """Return the objects that a file makes, in its order. Indexes go with their tables and are not among them."""
    made: list[Object] = []
    for raw in parse_sql(text):
        if make := _MAKERS.get(type(raw.stmt)):
            end = raw.stmt_location + raw.stmt_len if raw.stmt_len else None
            made.append(make(raw.stmt, text[raw.stmt_location : end]))
    return made


def is_repeatable(text: str) -> bool:
    """Tell whether a file can run again over what it made, once its triggers are dropped: it holds no table or data."""
    return all(isinstance(raw.stmt, _REPEATABLE) and getattr(raw.stmt, "replace", True) for raw in _but_triggers(text))


def _but_triggers(text: str) -> list[Any]:
    return [raw for raw in parse_sql(text) if not isinstance(raw.stmt, ast.CreateTrigStmt)]


def _function(statement: Any, text: str) -> Object:
    name = _dotted(statement.funcname)
    kind = "procedure" if statement.is_procedure else "function"
    parameters = [
        (parameter.name, _printed(parameter.argType), parameter.mode) for parameter in statement.parameters or ()
    ]
    taken = ", ".join(type_ for _, type_, mode in parameters if mode not in _OUT_ONLY)
    return Object(
        kind,
        name,
        f"drop {kind} if exists {name}({taken});\n",
        text,
        or_replace=statement.replace,
        fixed=(*parameters, statement.returnType and _printed(statement.returnType)),
        defaults=frozenset(
            position for position, parameter in enumerate(statement.parameters or ()) if parameter.defexpr
        ),
    )


def _view(statement: Any, text: str) -> Object:
    name = _relation(statement.view)
    query = statement.query
    while query.larg:  # the names are those of the first branch of a UNION
        query = query.larg
    columns = tuple(target.name or _printed(target.val).rpartition(".")[2] for target in query.targetList)
    return Object("view", name, f"drop view {name};\n", text, or_replace=statement.replace, columns=columns)


def _trigger(statement: Any, text: str) -> Object:
    name = f"{statement.trigname} on {_relation(statement.relation)}"
    return Object("trigger", name, f"drop trigger {name};\n", text, or_replace=statement.replace)


def _plain(kind: str, name_of: Callable[[Any], str]) -> Callable[[Any, str], Object]:
    """Make the maker of a kind of which only the name matters here."""
    return lambda statement, text: Object(kind, name_of(statement), f"drop {kind} {name_of(statement)};\n", text)


def _printed(node: Any) -> str:
    return str(RawStream()(node))  # type: ignore[no-untyped-call]


def _dotted(names: Any) -> str:
    return ".".join(name.sval for name in names)


def _relation(range_: Any) -> str:
    return f"{range_.schemaname}.{range_.relname}"


_MAKERS: dict[type, Callable[[Any, str], Object]] = {
    ast.CreateFunctionStmt: _function,
    ast.ViewStmt: _view,
    ast.CreateTrigStmt: _trigger,
    ast.CreateStmt: _plain("table", lambda statement: _relation(statement.relation)),
    ast.CreateSeqStmt: _plain("sequence", lambda statement: _relation(statement.sequence)),
    ast.CompositeTypeStmt: _plain("type", lambda statement: _relation(statement.typevar)),
    ast.CreateEnumStmt: _plain("type", lambda statement: _dotted(statement.typeName)),
    ast.CreateDomainStmt: _plain("domain", lambda statement: _dotted(statement.domainname)),
    ast.CreateSchemaStmt: _plain("schema", lambda statement: str(statement.schemaname)),
}

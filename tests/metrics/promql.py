"""What a PromQL expression reads and groups by."""

from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as promql

_VARIABLES = {"$__rate_interval": "5m", "$datname": ".*", "$policy": ".*", "$job": ".*"}


@dataclass(frozen=True)
class Read:
    """One selector: the series that it reads, and the labels that it, or what is around it, names."""

    series: str
    labels: frozenset[str]


def without_variables(expression: str) -> str:
    """Return an expression of a dashboard as Grafana sends it, with all values chosen."""
    for variable, value in _VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


def reads(expression: str) -> list[Read]:
    """Return what an expression reads."""
    return list(_reads(promql.parse(expression), frozenset()))


def _reads(node: object, around: frozenset[str]) -> Iterator[Read]:
    match node:
        case promql.VectorSelector():
            named = {matcher.name for matcher in node.matchers.matchers}
            assert node.name is not None, "a selector without a name reads everything"
            yield Read(node.name, around | named)
        case promql.MatrixSelector():
            yield from _reads(node.vector_selector, around)
        case promql.AggregateExpr():
            grouped = frozenset(node.modifier.labels) if node.modifier else frozenset()
            yield from _reads(node.expr, around | grouped)
        case promql.Call():
            for argument in node.args:
                yield from _reads(argument, around)
        case promql.BinaryExpr():
            yield from _reads(node.lhs, around)
            yield from _reads(node.rhs, around)
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            yield from _reads(node.expr, around)
        case promql.NumberLiteral() | promql.StringLiteral():
            pass
        case _:
            raise AssertionError(f"not a known part of PromQL: {node!r}")

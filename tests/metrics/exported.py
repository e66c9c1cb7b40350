"""What is exported: metrics and their labels, read from the files of sql/monitoring and from pyidem.prometheus."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from prometheus_client import CollectorRegistry

from pyidem import Decision
from pyidem.prometheus import DecisionMetrics
from tests.support.database import ROOT

MONITORING = ROOT / "sql" / "monitoring"
QUERIES = MONITORING / "postgres_exporter.yaml"
COLLECTOR = MONITORING / "sql_exporter.collector.yaml"
ALERTS = MONITORING / "alerts.yaml"
DASHBOARD = MONITORING / "grafana.json"

SCRAPED = frozenset({"job", "instance"})
"""The labels that Prometheus itself adds."""


@dataclass(frozen=True)
class Query:
    """One query of the file: what it is, and what becomes of its columns."""

    name: str
    sql: str
    labels: tuple[str, ...]
    values: dict[str, tuple[str, str]]
    """Usage and description by the name of the metric's column."""


def queries() -> list[Query]:
    """Return the queries for postgres_exporter."""
    return [query(name, parts) for name, parts in yaml.safe_load(QUERIES.read_text()).items()]


def query(name: str, parts: dict[str, Any]) -> Query:
    """Read one."""
    columns = {column: about for each in parts["metrics"] for column, about in each.items()}
    return Query(
        name,
        parts["query"],
        tuple(column for column, about in columns.items() if about["usage"] == "LABEL"),
        {c: (about["usage"], about["description"]) for c, about in columns.items() if about["usage"] != "LABEL"},
    )


@cache
def exported() -> dict[str, frozenset[str]]:
    """Return the labels of every time series that is exported, by its name."""
    by_database = {f"{query.name}_{column}": frozenset(query.labels) for query in queries() for column in query.values}
    return {name: labels | SCRAPED for name, labels in (by_database | by_python()).items()}


def by_python() -> dict[str, frozenset[str]]:
    """Return the same for the Python side, as a registry tells it."""
    registry = CollectorRegistry()
    DecisionMetrics(registry)(Decision("reserve", "scope", "error", 1, 0.1, "IK001"))
    return {
        sample.name: frozenset(sample.labels)
        for metric in registry.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }

"""Every query for the exporters runs as a monitor and gives the numbers of the database."""

import re
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.rows import dict_row

from tests.docs.blocks import rows, sections
from tests.metrics.conftest import Watched
from tests.metrics.exported import ALERTS, COLLECTOR, MONITORING, QUERIES, Query, queries
from tests.support.database import Database

HOUR = 3600


def measure(watched: Watched) -> dict[tuple[str, ...], Any]:
    """Run every query as the monitor; return the values by metric and labels, the database's name left out."""
    values: dict[tuple[str, ...], Any] = {}
    with psycopg.connect(watched.dsn, row_factory=dict_row) as monitor:
        for query in queries():
            for row in monitor.execute(query.sql.encode()).fetchall():
                assert row["datname"] == watched.database.name
                labels = [row[label] for label in query.labels if label != "datname"]
                for column in query.values:
                    series = (f"{query.name}_{column}", *labels)
                    assert series not in values, "no exporter takes a series twice"
                    values[series] = row[column]
    return values


def test_keys_are_counted_by_policy_and_state(loaded: Watched) -> None:
    values = measure(loaded)
    counted = {key[1:]: value for key, value in values.items() if key[0] == "pyidem_keys" and value > 0}
    assert counted.pop(("messages", "finished")) == pytest.approx(900, abs=1)
    assert counted.pop(("short", "finished")) == pytest.approx(5, abs=1)
    assert {state: n for state, n in counted.items() if state[1] != "finished"} == {
        ("default", "in_progress"): 2,
        ("default", "released"): 1,
        ("default", "lapsed"): 1,
        ("bank", "lapsed"): 1,
        ("provider", "lapsed"): 2,
    }
    assert values["pyidem_keys_oldest_age_seconds", "default", "lapsed"] == pytest.approx(HOUR, abs=60)
    assert values["pyidem_keys_oldest_age_seconds", "default", "in_progress"] == pytest.approx(0, abs=60)
    assert values["pyidem_keys_bytes", "messages", "finished"] > values["pyidem_keys_bytes", "short", "finished"] > 0


def test_what_waits_for_somebody_is_told_by_policy(loaded: Watched) -> None:
    values = measure(loaded)
    waiting = {
        policy: tuple(values[f"pyidem_lapsed_{figure}", policy] for figure in ("unresolved_keys", "given_up_keys"))
        for policy in ("default", "bank", "provider", "messages")
    }
    assert waiting == {"default": (1, 0), "bank": (1, 1), "provider": (1, 0), "messages": (0, 0)}
    ages = [values["pyidem_lapsed_oldest_age_seconds", policy] for policy in ("default", "bank", "messages")]
    assert ages == [pytest.approx(HOUR - 1, abs=60), pytest.approx(HOUR / 2 - 1, abs=60), 0]


def test_the_backlog_of_the_purge_is_told(loaded: Watched) -> None:
    values = measure(loaded)
    with psycopg.connect(loaded.database.dsn) as admin:
        now = admin.execute("select extract(epoch from clock_timestamp())::float8").fetchone()
    assert now is not None
    assert values["pyidem_purge_due_keys",] == 5
    assert values["pyidem_purge_due_oldest_age_seconds",] == pytest.approx(29 * HOUR, abs=60)
    assert values["pyidem_purge_last_end_timestamp_seconds",] == pytest.approx(now[0] - 38 * HOUR, abs=60)
    assert values["pyidem_purge_last_removed_keys",] == 1


def test_checks_that_fail_are_told_apart_from_those_that_cannot_tell(loaded: Watched) -> None:
    values = measure(loaded)
    told = {
        check: (values["pyidem_health_failed", check], values["pyidem_health_unknown", check])
        for check in ("testing", "lapsed", "given_up", "purge", "primary_key", "drift")
    }
    failed, well = (1, 0), (0, 0)
    assert told == {
        "testing": failed,
        "lapsed": failed,
        "given_up": failed,
        "purge": failed,
        "primary_key": well,
        "drift": well,
    }
    with psycopg.connect(loaded.database.dsn) as admin:
        admin.execute("drop index idem_private.reservation_expiry")
    values = measure(loaded)
    assert (values["pyidem_health_failed", "purge"], values["pyidem_health_unknown", "purge"]) == (0, 1)
    assert values["pyidem_health_failed", "expiry_index"] == 1
    assert str(values["pyidem_purge_due_keys",]) == "nan", "what cannot be seen is not 0"


def test_where_nothing_is_there_are_zeros_rather_than_nothing(watched: Watched) -> None:
    values = measure(watched)
    states = ("in_progress", "lapsed", "released", "finished")
    assert {values["pyidem_keys", "default", state] for state in states} == {0}
    assert values["pyidem_lapsed_oldest_age_seconds", "default"] == 0
    assert values["pyidem_purge_last_end_timestamp_seconds",] == 0
    assert values["pyidem_health_failed", "testing"] == 0
    with psycopg.connect(watched.database.dsn) as admin:
        version = admin.execute("select idem.version()").fetchone()
    assert version is not None
    assert values["pyidem_installation_info", version[0]] == 1


def test_columns_are_what_the_file_declares(loaded: Watched) -> None:
    with psycopg.connect(loaded.dsn, row_factory=dict_row) as monitor:
        for query in queries():
            rows = monitor.execute(query.sql.encode()).fetchall()
            assert rows
            for row in rows:
                assert set(row) == {*query.labels, *query.values}
                assert all(isinstance(row[label], str) and row[label] for label in query.labels)
                assert all(isinstance(row[column], float) for column in query.values)


def test_whoever_is_no_monitor_is_refused_all_but_the_version(db: Database) -> None:
    role = db.create_role()
    with psycopg.connect(db.dsn) as admin:
        admin.execute("select idem.grant_client(%s)", [role])
    refused = set()
    with psycopg.connect(db.dsn_of(role), autocommit=True) as client:
        for query in queries():
            try:
                client.execute(query.sql.encode())
            except psycopg.errors.InsufficientPrivilege:
                refused.add(query.name)
    assert refused == {query.name for query in queries()} - {"pyidem_installation"}


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.name)
def test_names_keep_to_the_rules_of_prometheus(query: Query) -> None:
    for column, (usage, description) in query.values.items():
        name = f"{query.name}_{column}"
        assert re.fullmatch("[a-z]+(_[a-z]+)+", name)
        assert (usage == "COUNTER") == name.endswith("_total")
        assert ("age" in column or "timestamp" in column) == name.endswith("_seconds")
        assert not name.endswith(("_count", "_sum", "_bucket"))
        assert description


def test_the_file_for_sql_exporter_says_the_same() -> None:
    collector = yaml.safe_load(COLLECTOR.read_text())
    texts = {each["query_name"]: each["query"] for each in collector["queries"]}
    assert texts == {query.name: query.sql for query in queries()}

    declared = {
        metric["metric_name"]: (
            metric["query_ref"],
            metric["type"],
            metric["help"],
            metric["key_labels"],
            metric["values"],
        )
        for metric in collector["metrics"]
    }
    assert declared == {
        f"{query.name}_{column}": (query.name, usage.lower(), description, list(query.labels), [column])
        for query in queries()
        for column, (usage, description) in query.values.items()
    }


def test_the_queries_read_what_a_monitor_may_use_and_nothing_else() -> None:
    named = set(re.findall(r"\bidem\w*\.\w+", QUERIES.read_text().split("\n\n", 1)[1]))
    assert named - {"idem.health", "idem.grant_monitor"} == {
        "idem.stats",
        "idem.keys",
        "idem.purge_state",
        "idem.version",
    }


def test_the_page_lists_what_is_exported_and_the_alerts() -> None:
    page = MONITORING / "README.md"
    metrics, alerts = (rows(sections(page)[title]) for title in ("What is exported", "Alerts"))
    listed = {row[0].strip("`"): set(re.findall(r"`(\w+)`", row[1])) for row in metrics}
    assert listed == {
        f"{query.name}_{column}": set(query.labels) - {"datname"} for query in queries() for column in query.values
    }
    rules = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
    assert [row[0].strip("`") for row in alerts] == [rule["alert"] for rule in rules]

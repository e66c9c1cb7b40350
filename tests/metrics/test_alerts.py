"""The alert rules are valid, name what is exported, and are raised when they should be and not before."""

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.metrics.exported import ALERTS, exported
from tests.metrics.promql import reads
from tests.support.server import find_program

RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
]
BY_NAME = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])

WELL = 'datname="well", job="postgres", instance="one"'
SHOP = 'datname="shop", job="postgres", instance="one"'


class Case(NamedTuple):
    """What is wrong in one database, from when on, and in which minute the alert has to be there, and not before."""

    alert: str | None
    series: str
    values: str
    raised: int


FIGURES = ("lapsed", "given_up", "purge")

CASES = [
    # 840 s at the beginning, and more than 900 s two minutes later
    Case("PyidemLapsedTooOld", f'pyidem_lapsed_oldest_age_seconds{{{SHOP}, policy="bank"}}', "840+60x30", 4),
    Case("PyidemKeysGivenUp", f'pyidem_lapsed_given_up_keys{{{SHOP}, policy="bank"}}', "0x4 1x30", 7),
    # one minute below 25 hours at the beginning
    Case("PyidemPurgeBehind", f"pyidem_purge_due_oldest_age_seconds{{{SHOP}}}", "89940+60x30", 17),
    Case("PyidemPurgeJobFailing", f'pyidem_health_failed{{{SHOP}, check="purge_job"}}', "1x30", 15),
    Case("PyidemPurgeJobFailing", f'pyidem_health_failed{{{SHOP}, check="purge_job_runs"}}', "1x30", 15),
    Case("PyidemDrift", f'pyidem_health_failed{{{SHOP}, check="drift"}}', "1x30", 5),
    Case("PyidemDrift", f'pyidem_health_failed{{{SHOP}, check="version"}}', "1x30", 5),
    Case("PyidemTestingEnabled", f'pyidem_health_failed{{{SHOP}, check="testing"}}', "0x4 1x30", 5),
    Case("PyidemHealthCheckFailed", f'pyidem_health_failed{{{SHOP}, check="primary_key"}}', "1x30", 5),
    # these have alerts of their own, which go by the figures
    *(Case(None, f'pyidem_health_failed{{{SHOP}, check="{check}"}}', "1x30", 30) for check in FIGURES),
    # five minutes after its last figure, which was that of the fifth minute
    Case("PyidemMonitorBlind", f'pyidem_health_failed{{{SHOP}, check="testing"}}', "0x5 stale", 11),
]


def test_each_alert_has_a_case() -> None:
    elsewhere = {"PyidemPurgeNotRunning"}
    assert {case.alert for case in CASES if case.alert} | elsewhere == {rule["alert"] for rule in RULES}


@BY_NAME
def test_an_alert_names_what_is_exported(rule: dict[str, Any]) -> None:
    for read in reads(rule["expr"]):
        assert read.series in exported()
        assert read.labels <= exported()[read.series]


@BY_NAME
def test_an_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule["annotations"]) == {"summary", "description", "runbook_command"}
    assert rule["labels"]["severity"] in {"warning", "critical"}
    named = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
    assert named <= frozenset.intersection(*(exported()[read.series] for read in reads(rule["expr"])))
    assert rule["annotations"]["runbook_command"].startswith(("psql -d ", "pyidem "))


def test_each_alert_is_raised_in_time_and_no_other_one(tmp_path: Path) -> None:
    well = [
        {"series": f'pyidem_lapsed_oldest_age_seconds{{{WELL}, policy="default"}}', "values": "60x30"},
        {"series": f'pyidem_lapsed_given_up_keys{{{WELL}, policy="default"}}', "values": "0x30"},
        {"series": f"pyidem_purge_due_oldest_age_seconds{{{WELL}}}", "values": "3600x30"},
        {"series": f"pyidem_purge_due_keys{{{WELL}}}", "values": "1x30"},
        {"series": f"pyidem_purge_last_end_timestamp_seconds{{{WELL}}}", "values": "0x30"},
        {"series": f'pyidem_health_failed{{{WELL}, check="lapsed"}}', "values": "0x30"},
    ]
    tests = [
        {
            "interval": "1m",
            "input_series": [*well, {"series": case.series, "values": case.values}],
            "promql_expr_test": [firing(f"{case.raised - 1}m"), firing(f"{case.raised}m", *filter(None, [case.alert]))],
        }
        for case in CASES
    ]
    promtool(tmp_path, tests)


def test_a_purge_that_has_not_run_is_missed_where_something_is_due(tmp_path: Path) -> None:
    last = {"series": f"pyidem_purge_last_end_timestamp_seconds{{{SHOP}}}", "values": "0x200"}
    seen = {"series": f'pyidem_health_failed{{{SHOP}, check="drift"}}', "values": "0x200"}
    due, nothing_due = ({"series": f"pyidem_purge_due_keys{{{SHOP}}}", "values": f"{keys}x200"} for keys in (5, 0))
    # looked at every ten minutes, it is more than 25 hours at 25:10, and has been so for a quarter of an hour at 25:30
    promtool(
        tmp_path,
        [
            {
                "interval": "10m",
                "input_series": [last, seen, due],
                "promql_expr_test": [firing("25h20m"), firing("25h30m", "PyidemPurgeNotRunning")],
            },
            {"interval": "10m", "input_series": [last, seen, nothing_due], "promql_expr_test": [firing("30h")]},
        ],
        every="10m",
    )


def test_where_there_are_no_figures_at_all_that_is_an_alert_too(tmp_path: Path) -> None:
    nothing = [{"series": "up", "values": "0x30"}]
    checks = [firing("4m"), firing("5m", "PyidemMonitorBlind")]
    promtool(tmp_path, [{"interval": "1m", "input_series": nothing, "promql_expr_test": checks}])


def firing(at: str, *alerts: str) -> dict[str, Any]:
    """Expect just these alerts at a time."""
    return {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": at,
        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts],
    }


def promtool(folder: Path, tests: list[dict[str, Any]], *, every: str = "1m") -> None:
    """Let Prometheus' own tool check the rules and run unit tests of them."""
    program = find_program("promtool")
    assert program is not None, "the fixture `installation` has checked that it is there"
    file = folder / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": every, "tests": tests}))
    for command in (["check", "rules", str(ALERTS)], ["test", "rules", str(file)]):
        done = subprocess.run([program, *command], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

"""A real Prometheus reads a real exporter and an application: alerts are raised, and every panel has its numbers."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from math import isnan
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import uuid4

import psycopg
import pytest
from prometheus_client import CollectorRegistry, start_http_server
from psycopg_pool import ConnectionPool

from pyidem import Idem, LostReservation, Sweeper
from pyidem.client import LeasedOp
from pyidem.embedded import Cluster
from pyidem.prometheus import DecisionMetrics
from pyidem.wsgi import IdempotencyMiddleware
from tests.metrics import servers
from tests.metrics.conftest import Watched, at
from tests.metrics.exported import exported
from tests.metrics.promql import without_variables
from tests.metrics.test_dashboard import TARGETS
from tests.support.database import new_database
from tests.support.server import find_program
from tests.support.waiting import wait_until

CANNOT_TELL = "Checks that fail, or cannot tell B"
"""The only expression without a number here: no check is in doubt on this server."""


class Application:
    """One that makes every kind of decision, and exports what it counts."""

    def __init__(self, pool: ConnectionPool, registry: CollectorRegistry) -> None:
        self._idem = Idem(pool, on_decision=DecisionMetrics(registry))
        self._guarded = IdempotencyMiddleware(lambda *_: [], self._idem, scope=lambda _: "")

    def work(self, lapse: Callable[[str], None]) -> None:
        """Do, repeat, fail, sweep, and turn a request away."""
        scope, key = "live", str(uuid4())
        for _ in range(2):
            with self._idem.atomic(scope, key) as op:
                if op.started:
                    op.complete(201)
        self._idem.reserve(scope, f"{key}-open", mode="leased")
        self._idem.reserve(scope, f"{key}-open", mode="leased")
        with pytest.raises(LostReservation):
            self._idem.complete(scope, f"{key}-open", uuid4(), status=201)
        lapse(f"{key}-lapsed")
        assert Sweeper(self._idem, complete, scope="swept").run_once().completed == 1
        call = {"REQUEST_METHOD": "POST", "HTTP_IDEMPOTENCY_KEY": key, "PATH_INFO": "/"}
        assert list(self._guarded(call, lambda *_: lambda _: None))


def complete(op: LeasedOp[psycopg.Connection]) -> None:
    op.complete(200)


@pytest.fixture
def application(loaded: Watched) -> Iterator[tuple[Application, str]]:
    """The application, and where it exports."""
    registry = CollectorRegistry()
    server, thread = start_http_server(0, "127.0.0.1", registry)
    with ConnectionPool(loaded.database.dsn, min_size=1, max_size=3, open=True) as pool:
        yield Application(pool, registry), f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_prometheus_raises_alerts_and_every_panel_has_numbers(
    loaded: Watched, application: tuple[Application, str], tmp_path: Path
) -> None:
    app, exports = application
    with (
        at(loaded, timedelta(hours=-1)) as past,
        servers.exporter(url(loaded), tmp_path) as exporter,
        servers.prometheus({"postgres": exporter, "shop": exports}, tmp_path) as prometheus,
    ):

        def lapse(key: str) -> None:
            row = past.execute(
                "select outcome from idem.reserve('swept', %s, mode => 'leased', lease => '1 second')", [key]
            ).fetchone()
            assert row == ("started",)

        def numbers() -> dict[str, list[float]]:
            return {
                f"{title} {target['refId']}": [
                    float(series["value"][1]) for series in prometheus.query(without_variables(target["expr"]))
                ]
                for title, target in TARGETS
            }

        def all_panels_have_numbers() -> bool:
            app.work(lapse)
            return all(
                panel == CANNOT_TELL or (values and not any(isnan(value) for value in values))
                for panel, values in numbers().items()
            )

        wait_until(all_panels_have_numbers, "numbers in all panels", timeout=60)
        # what was swept meanwhile was lapsed for a moment, in which it may have been counted
        wait_until(lambda: numbers()["Unknown outcomes A"] == [4], "the last sweep to be seen")
        shown = numbers()
        for panel, values in shown.items():
            print(f"{panel}: {', '.join(f'{value:g}' for value in sorted(values))}")
        assert shown["Wait for a person A"] == [1]
        assert shown["Oldest of them A"] == [pytest.approx(3600, abs=180)]
        assert shown["Oldest expired key A"] == [pytest.approx(29 * 3600, abs=180)]
        assert shown["Keys due for the purge A"] == [5]
        assert all(0 < share < 1 for share in shown["Share of attempts that were repeats A"])
        assert all(0 < seconds < 30 for seconds in shown["Time to a decision, 50 % and 99 % B"])

        lapsed = prometheus.query("pyidem_lapsed_oldest_age_seconds > 15 * 60")
        assert {series["metric"]["policy"] for series in lapsed} == {"default", "bank", "provider"}
        expected = {
            *(("PyidemLapsedTooOld", policy) for policy in ("default", "bank", "provider")),
            ("PyidemKeysGivenUp", "bank"),
            ("PyidemPurgeBehind", None),
            ("PyidemPurgeNotRunning", None),
            ("PyidemPurgeJobFailing", "purge_job"),
            ("PyidemTestingEnabled", "testing"),
            ("PyidemHealthCheckFailed", "durability"),  # the data of this server is thrown away
        }
        wait_until(lambda: {named(alert) for alert in prometheus.firing()} >= expected, "the alerts")
        raised = prometheus.firing()
        assert {named(alert) for alert in raised} == expected
        for alert in raised:
            print(f"{alert['labels']['alertname']}: {alert['annotations']['summary']}")
            assert loaded.database.name in alert["annotations"]["summary"]
        for command in {alert["annotations"]["runbook_command"] for alert in raised}:
            assert run(command, loaded) == ""


def test_what_is_exported_of_two_databases_passes_the_linter_of_prometheus(
    loaded: Watched, server: Cluster, template: str, tmp_path: Path
) -> None:
    with new_database(server, template=template) as other:
        with psycopg.connect(other.dsn) as admin:
            admin.execute("select idem.grant_monitor(%s)", [loaded.monitor])
        everywhere = servers.exporter(url(loaded), tmp_path, "--auto-discover-databases")
        with everywhere as exporter, urlopen(f"http://{exporter}/metrics") as page:
            text = page.read().decode()
    ours = "".join(line for line in text.splitlines(keepends=True) if re.match(r"(# (HELP|TYPE) )?pyidem_", line))
    series = re.findall(r'^(pyidem_\w+)\{.*datname="(\w+)"', ours, re.MULTILINE)
    by_database = {name for name in exported() if "decision" not in name}
    assert set(series) == {(name, database) for name in by_database for database in (loaded.database.name, other.name)}
    linted = subprocess.run(
        [str(find_program("promtool")), "check", "metrics"], input=ours, check=False, capture_output=True, text=True
    )
    assert (linted.returncode, linted.stdout + linted.stderr) == (0, "")


def url(watched: Watched) -> str:
    """Return the connection string of the monitor as postgres_exporter takes it."""
    cluster = watched.database.cluster
    return (
        f"postgresql://{watched.monitor}:{cluster.password}@{cluster.host}:{cluster.port}/{watched.database.name}"
        "?sslmode=disable"
    )


def named(alert: dict[str, Any]) -> tuple[str, str | None]:
    """Return its name, and what it is about besides the database."""
    labels = alert["labels"]
    return labels["alertname"], labels.get("policy") or labels.get("check")


def run(command: str, watched: Watched) -> str:
    """Paste a command into a shell, as the superuser; return what it complained of."""
    path = os.pathsep.join([str(Path(sys.executable).parent), str(watched.database.cluster.bindir), os.defpath])
    environment = watched.database.environment | {"PATH": path}
    done = subprocess.run(command, shell=True, env=environment, check=False, capture_output=True, text=True)
    return done.stderr

"""A Prometheus and a postgres_exporter of the test's own, on loopback, ended by what started them."""

import json
import re
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.metrics.exported import ALERTS, QUERIES
from tests.support.server import find_program
from tests.support.waiting import wait_until


@contextmanager
def exporter(dsn: str, folder: Path, *more: str) -> Iterator[str]:
    """Run postgres_exporter with the query file and little else; yield its host and port."""
    options = ["--disable-default-metrics", "--disable-settings-metrics", f"--extend.query-path={QUERIES}", *more]
    with _serving("prometheus-postgres-exporter", options, folder, {"DATA_SOURCE_NAME": dsn}, ready="/") as address:
        yield address


class Prometheus:
    """One that scrapes every other second; what it says over its API."""

    def __init__(self, address: str) -> None:
        self._base = f"http://{address}/api/v1"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that an expression gives now."""
        result: list[dict[str, Any]] = self._get(f"query?{urllib.parse.urlencode({'query': expression})}")["result"]
        return result

    def firing(self) -> list[dict[str, Any]]:
        """Return the alerts that are raised."""
        return [alert for alert in self._get("alerts")["alerts"] if alert["state"] == "firing"]

    def _get(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self._base}/{what}") as answer:
            return json.load(answer)["data"]


@contextmanager
def prometheus(targets: Mapping[str, str], folder: Path) -> Iterator[Prometheus]:
    """Run one that scrapes addresses under the names of their jobs; its alerts do not wait before they are raised."""
    rules, configuration = folder / "alerts.yaml", folder / "prometheus.yaml"
    rules.write_text(re.sub(r"\n +for: \w+", "", ALERTS.read_text()))
    jobs = [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()]
    every = {"scrape_interval": "2s", "evaluation_interval": "1s"}
    configuration.write_text(yaml.safe_dump({"global": every, "rule_files": [str(rules)], "scrape_configs": jobs}))
    options = [f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}"]
    with _serving("prometheus", options, folder, {}, ready="/-/ready") as address:
        yield Prometheus(address)


@contextmanager
def _serving(
    program: str, options: list[str], folder: Path, environment: Mapping[str, str], *, ready: str
) -> Iterator[str]:
    found = find_program(program)
    assert found is not None, "the fixture `installation` has checked that it is there"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    output = folder / f"{program}.log"
    with output.open("w") as log:
        process = subprocess.Popen(
            [found, *options, f"--web.listen-address={address}"],
            stdout=log,
            stderr=log,
            env={"PATH": "/usr/bin:/bin", **environment},
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(f"http://{address}{ready}"), f"{program} to be ready")
        assert process.poll() is None, output.read_text()
        yield address
    finally:
        process.terminate()
        process.wait()


def _answers(page: str) -> bool:
    """Tell whether it serves: a port may listen, and answer 503, while the program still reads what it stores."""
    try:
        urllib.request.urlopen(page).close()
    except OSError:
        return False
    return True

"""Decisions as metrics: the two libraries get the same numbers, in either flavour, and never a scope or a key."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, CollectorRegistry

import pyidem.opentelemetry
import pyidem.prometheus
from pyidem import AsyncIdem, AsyncSweeper, Decision, HttpCall, Idem, LostReservation, Sweeper
from pyidem._decisions import OnDecision
from tests.client.flavours import Client, OpenClient
from tests.client.resolvers import lapse, resolver_of

Numbers = dict[tuple[str, ...], float]

SECRET = "secret-key-and-body"
LABELS = ("call", "outcome", "sqlstate", "le")
BOTH = pytest.mark.parametrize("name", ["sync-pool", "async-sessionmaker"])


class Measured:
    """A hook of one of the libraries, and what Prometheus would read of it."""

    def __init__(self, hook: OnDecision, registry: CollectorRegistry) -> None:
        self.hook = hook
        self._registry = registry

    def numbers(self) -> Numbers:
        """Return the samples by name and labels."""
        return {
            (sample.name, *(sample.labels.get(label, "") for label in LABELS)): sample.value
            for metric in self._registry.collect()
            for sample in metric.samples
            if sample.name.startswith("pyidem_") and not sample.name.endswith("_created")
        }

    def counts(self) -> dict[tuple[str, ...], float]:
        """Return how often each outcome of each call was counted."""
        return {key[1:3]: value for key, value in self.numbers().items() if key[0] == "pyidem_decisions_total"}

    def timed(self) -> dict[str, float]:
        """Return how many of each call were timed."""
        count = "pyidem_decision_duration_seconds_count"
        return {key[1]: value for key, value in self.numbers().items() if key[0] == count}

    def labels(self) -> set[tuple[str, str]]:
        """Return every label with every value, but for what OpenTelemetry says of itself."""
        return {
            (name, value)
            for metric in self._registry.collect()
            for sample in metric.samples
            if sample.name.startswith("pyidem_")
            for name, value in sample.labels.items()
            if not name.startswith("otel_scope_")
        }


def by_prometheus() -> Measured:
    registry = CollectorRegistry()
    return Measured(pyidem.prometheus.DecisionMetrics(registry), registry)


def by_opentelemetry() -> Measured:
    reader = PrometheusMetricReader()
    REGISTRY.unregister(reader._collector)
    registry = CollectorRegistry()
    registry.register(reader._collector)
    provider = MeterProvider([reader], shutdown_on_exit=False)
    return Measured(pyidem.opentelemetry.DecisionMetrics(provider), registry)


@pytest.fixture(params=[by_prometheus, by_opentelemetry], ids=["prometheus", "opentelemetry"])
def measured(request: pytest.FixtureRequest) -> Measured:
    """Either of the two."""
    make: Callable[[], Measured] = request.param
    return make()


def measure(client: Client, measured: Measured) -> None:
    client.idem = (AsyncIdem if client.asynchronous else Idem)(client.origin, on_decision=measured.hook)


@BOTH
def test_calls_and_requests_are_counted_and_timed(
    name: str, measured: Measured, open_client: OpenClient, scope: str
) -> None:
    client = open_client(name)
    measure(client, measured)
    for _ in range(3):
        with client.atomic(scope, SECRET) as op:
            if op.started:
                op.complete(201, SECRET)
    with client.atomic(scope, SECRET, fingerprint=b"other"):
        pass
    for status in (503, 201):
        with client.atomic(scope, HttpCall(f"{SECRET}-http", "POST", "/", SECRET.encode())) as op:
            op.complete(status, SECRET)
    with pytest.raises(LostReservation):
        client.complete(scope, SECRET, uuid4())

    assert measured.counts() == {
        ("reserve", "started"): 1,
        ("complete", "stored"): 1,
        ("reserve", "replay"): 2,
        ("reserve", "mismatch"): 1,
        ("http_reserve", "started"): 2,
        ("http_complete", "rollback"): 1,
        ("http_complete", "stored"): 1,
        ("complete", "error"): 1,
    }
    assert measured.numbers()["pyidem_decisions_total", "complete", "error", "IK002", ""] == 1
    assert measured.timed() == {"reserve": 4, "complete": 2, "http_reserve": 2, "http_complete": 2}
    spent = [value for key, value in measured.numbers().items() if key[0] == "pyidem_decision_duration_seconds_sum"]
    assert all(0 < seconds < 60 for seconds in spent)


@BOTH
def test_what_a_sweeper_does_is_counted(
    name: str, measured: Measured, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client(name)
    measure(client, measured)
    lapse(observer, scope)
    resolver = resolver_of(client, lambda _: "complete")
    sweeper = (AsyncSweeper if client.asynchronous else Sweeper)(client.idem, resolver, scope=scope)

    assert client.finish(sweeper.run_once()).completed == 1

    assert measured.counts() == {("complete", "stored"): 1, ("sweep", "completed"): 1}
    assert measured.timed() == {"complete": 1, "sweep": 1}


def test_no_label_tells_a_scope_or_a_key(measured: Measured, open_client: OpenClient) -> None:
    client = open_client("sync-pool")
    measure(client, measured)
    for _ in range(2):
        with client.leased(SECRET, SECRET) as op:
            if op.started:
                op.complete(201, SECRET)
    client.once(SECRET, SECRET, on=(lent := client.lend()))
    client.finish(lent.rollback())

    assert {name for name, _ in measured.labels()} <= set(LABELS)
    assert not [value for _, value in measured.labels() if SECRET in value]


def test_what_the_middleware_refuses_by_itself_takes_no_time(measured: Measured) -> None:
    measured.hook(Decision("request", "scope", "too_large"))

    assert measured.counts() == {("request", "too_large"): 1}
    assert measured.timed() == {}


def test_nothing_is_lost_between_threads(measured: Measured) -> None:
    with ThreadPoolExecutor(8) as threads:
        for _ in threads.map(measured.hook, [Decision("reserve", "scope", "replay", 1, 0.004)] * 2000):
            pass

    assert measured.counts() == {("reserve", "replay"): 2000}
    assert measured.numbers()["pyidem_decision_duration_seconds_bucket", "reserve", "", "", "0.005"] == 2000
    assert measured.numbers()["pyidem_decision_duration_seconds_bucket", "reserve", "", "", "0.0025"] == 0


def test_both_libraries_give_prometheus_the_same_series() -> None:
    prometheus, opentelemetry = by_prometheus(), by_opentelemetry()
    for decision in some_of_each():
        prometheus.hook(decision)
        opentelemetry.hook(decision)

    assert prometheus.numbers() == opentelemetry.numbers()


def some_of_each() -> Iterator[Decision]:
    for call in ("reserve", "http_reserve", "sweep", "request"):
        for number, seconds in enumerate((0.0005, 0.001, 0.125, 64.0)):
            yield Decision(call, "scope", f"outcome-{number}", 1, seconds)
        yield Decision(call, "scope", "error", None, 0.5, "40001")

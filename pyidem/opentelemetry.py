"""Decisions as metrics of OpenTelemetry.

    idem = Idem(pool, on_decision=DecisionMetrics())

Needs the extra ``opentelemetry``, which is the API alone; what exports them is the application's choice.
"""

from opentelemetry.metrics import MeterProvider, get_meter

from pyidem import __version__
from pyidem._decisions import Decision
from pyidem._metrics import BUCKETS, is_timed


class DecisionMetrics:
    """Counts decisions and how long they took; to be given as `on_decision`.

    The counter `pyidem.decisions` has the attributes `call` (the name of the `Decision`), `outcome`, and for errors
    `sqlstate`; the histogram `pyidem.decision.duration`, in seconds, has `call`. Neither has a scope or a key. Where
    they are exported to Prometheus, they have the names that `pyidem.prometheus` uses.

    Without a provider the global one is taken. It may be used from any thread.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        meter = get_meter("pyidem", __version__, meter_provider)
        self._decisions = meter.create_counter("pyidem.decisions", "{decision}", "What was decided.")
        self._seconds = meter.create_histogram(
            "pyidem.decision.duration",
            "s",
            "How long a decision took, with BEGIN or COMMIT where they share its round trip.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )

    def __call__(self, decision: Decision) -> None:
        """Count it."""
        attributes = {"call": decision.name, "outcome": decision.outcome}
        if decision.sqlstate is not None:
            attributes["sqlstate"] = decision.sqlstate
        self._decisions.add(1, attributes)
        if is_timed(decision):
            self._seconds.record(decision.seconds, {"call": decision.name})

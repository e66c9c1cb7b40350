"""Decisions as metrics of prometheus_client.

    idem = Idem(pool, on_decision=DecisionMetrics())

Needs the extra ``prometheus``.
"""

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

from pyidem._decisions import Decision
from pyidem._metrics import BUCKETS, is_timed


class DecisionMetrics:
    """Counts decisions and how long they took; to be given as `on_decision`.

    `pyidem_decisions_total` has the labels `call` (the name of the `Decision`), `outcome`, and `sqlstate`, which is
    empty but for errors; `pyidem_decision_duration_seconds` has `call`. Neither has a scope or a key.

    One object for each registry, shared by every `Idem` and `AsyncIdem` of the process. It may be used from any thread.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._decisions = Counter(
            "pyidem_decisions", "What was decided.", ["call", "outcome", "sqlstate"], registry=registry
        )
        self._seconds = Histogram(
            "pyidem_decision_duration_seconds",
            "How long a decision took, with BEGIN or COMMIT where they share its round trip.",
            ["call"],
            buckets=BUCKETS,
            registry=registry,
        )

    def __call__(self, decision: Decision) -> None:
        """Count it."""
        self._decisions.labels(decision.name, decision.outcome, decision.sqlstate or "").inc()
        if is_timed(decision):
            self._seconds.labels(decision.name).observe(decision.seconds)

"""What `pyidem.prometheus` and `pyidem.opentelemetry` have in common."""

from pyidem._decisions import Decision

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds in seconds: a decision takes milliseconds, one that has to wait for a connection takes seconds."""


def is_timed(decision: Decision) -> bool:
    """Tell whether its `seconds` mean something: what the middleware refuses by itself takes no time."""
    return decision.name != "request"

"""Idempotency keys decided in Postgres: an operation takes effect once, however often it is retried.

`Idem` and `AsyncIdem` are the clients; every decision they act on is made by functions in the database, which any other
language can call as well.
"""

from pyidem._errors import (
    IdempotencyError,
    InProgress,
    KeyExpired,
    KeyInvalid,
    KeyMissing,
    KeyReused,
    LimitExceeded,
    LostReservation,
    NoSuchPolicy,
    NoSuchReservation,
    NotCompleted,
    OutcomeUnknown,
    WrongMode,
    translate,
)
from pyidem._types import Handled, Mark, Reservation, Response
from pyidem.aio import AsyncAtomicOp, AsyncIdem, AsyncLeasedOp
from pyidem.client import AtomicOp, Idem, LeasedOp

__version__ = "0.1.0.dev0"

__all__ = [
    "AsyncAtomicOp",
    "AsyncIdem",
    "AsyncLeasedOp",
    "AtomicOp",
    "Handled",
    "Idem",
    "IdempotencyError",
    "InProgress",
    "KeyExpired",
    "KeyInvalid",
    "KeyMissing",
    "KeyReused",
    "LeasedOp",
    "LimitExceeded",
    "LostReservation",
    "Mark",
    "NoSuchPolicy",
    "NoSuchReservation",
    "NotCompleted",
    "OutcomeUnknown",
    "Reservation",
    "Response",
    "WrongMode",
    "translate",
]

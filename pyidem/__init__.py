"""Idempotency keys decided in Postgres: an operation takes effect once, however often it is retried.

`Idem` and `AsyncIdem` are the clients; every decision they act on is made by functions in the database, which any other
language can call as well.
"""

from pyidem._decisions import Decision
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
    NotKept,
    OutcomeUnknown,
    ScopeMissing,
    WrongMode,
    translate,
)
from pyidem._http import HttpCall
from pyidem._types import Handled, HttpReservation, Mark, Reservation, Response
from pyidem.aio import AsyncAtomicOp, AsyncIdem, AsyncLeasedOp
from pyidem.client import AtomicOp, Idem, LeasedOp

__version__ = "0.1.0.dev0"

__all__ = [
    "AsyncAtomicOp",
    "AsyncIdem",
    "AsyncLeasedOp",
    "AtomicOp",
    "Decision",
    "Handled",
    "HttpCall",
    "HttpReservation",
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
    "NotKept",
    "OutcomeUnknown",
    "Reservation",
    "Response",
    "ScopeMissing",
    "WrongMode",
    "translate",
]

"""Idempotency keys decided in Postgres: an operation takes effect once, however often it is retried.

`Idem` and `AsyncIdem` are the clients; every decision they act on is made by functions in the database, which any other
language can call as well.
"""

from pyidem._decisions import Decision
from pyidem._errors import (
    AccessMissing,
    DatabaseTooNew,
    DatabaseTooOld,
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
    NotInstalled,
    NotKept,
    NotReady,
    OutcomeUnknown,
    ResolverTimeout,
    ScopeMissing,
    WrongMode,
    translate,
)
from pyidem._http import HttpCall
from pyidem._sweeping import Swept
from pyidem._types import Event, Handled, HttpReservation, LapsedReservation, Mark, Reservation, Response
from pyidem.aio import AsyncAtomicOp, AsyncIdem, AsyncLeasedOp
from pyidem.client import AtomicOp, Idem, LeasedOp
from pyidem.sweeper import AsyncSweeper, Sweeper

__version__ = "0.1.1.dev0"

__all__ = [
    "AccessMissing",
    "AsyncAtomicOp",
    "AsyncIdem",
    "AsyncLeasedOp",
    "AsyncSweeper",
    "AtomicOp",
    "DatabaseTooNew",
    "DatabaseTooOld",
    "Decision",
    "Event",
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
    "LapsedReservation",
    "LeasedOp",
    "LimitExceeded",
    "LostReservation",
    "Mark",
    "NoSuchPolicy",
    "NoSuchReservation",
    "NotCompleted",
    "NotInstalled",
    "NotKept",
    "NotReady",
    "OutcomeUnknown",
    "Reservation",
    "ResolverTimeout",
    "Response",
    "ScopeMissing",
    "Sweeper",
    "Swept",
    "WrongMode",
    "translate",
]

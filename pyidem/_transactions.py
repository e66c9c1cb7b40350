"""The flows that open, end and repeat a transaction, whatever it is for."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pyidem import _calls
from pyidem._adapters import Source, Unit
from pyidem._calls import Call
from pyidem._drivers import Flow
from pyidem._errors import WrongMode, sqlstate_of

T = TypeVar("T")

_MAX_TRIES = 5
_SERIALIZATION_FAILURE = "40001"

_log = logging.getLogger("pyidem")


def single_call(source: Source, call: Call[T]) -> Flow[T]:
    """Make a call in a short transaction of its own; the connection goes back before this returns."""
    unit = yield from open_unit(source)
    try:
        return (yield partial(unit.once, call))  # type: ignore[no-any-return]
    except BaseException as error:
        yield from undo(unit, error)
        raise
    finally:
        yield unit.close


def joined_call(unit: Unit, call: Call[T]) -> Flow[T]:
    """Make a call in the application's transaction."""
    return (yield partial(unit.call, call))  # type: ignore[no-any-return]


def open_unit(source: Source) -> Flow[Unit]:
    """Open a unit that is to own its transaction, which is not possible where one is open already."""
    unit: Unit = yield source.open
    try:
        if (yield unit.inside):
            _refuse_inside(single_transaction=(yield partial(unit.call, _calls.SINGLE_TRANSACTION)))
    except BaseException:
        yield unit.close
        raise
    return unit


def retried(attempt: Callable[[], Flow[T]]) -> Flow[T]:
    """Try again in a fresh transaction after a serialization failure: nothing has been done yet."""
    for _ in range(_MAX_TRIES - 1):
        try:
            return (yield from attempt())
        except Exception as error:
            if sqlstate_of(error) != _SERIALIZATION_FAILURE:
                raise
            _log.debug("reserve.retried", extra={"sqlstate": _SERIALIZATION_FAILURE})
    return (yield from attempt())


def undo(unit: Unit, error: BaseException) -> Flow[None]:
    """Roll back. Where even that fails the connection is beyond use; the first error matters."""
    try:
        yield unit.rollback
    except Exception as failure:  # noqa: BLE001
        error.add_note(f"pyidem could not roll back either: {type(failure).__name__}: {failure}")


def _refuse_inside(*, single_transaction: bool) -> None:
    if not single_transaction:
        raise WrongMode(
            "the connection is already in a transaction",
            hint="End it first; or, for atomic mode, join it: on=connection, commit=True or False.",
        )

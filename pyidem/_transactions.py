"""The flows that open, begin and undo a transaction, whatever it is for."""

import logging
from functools import partial
from typing import TypeVar

from pyidem import _calls
from pyidem._adapters import Source, Unit
from pyidem._calls import Call
from pyidem._drivers import Flow
from pyidem._errors import NotCompleted, WrongMode, driver_error, sqlstate_of

T = TypeVar("T")

MAX_TRIES = 5
"""How often what can be run again is run in all."""

_SERIALIZATION_FAILURE = "40001"
_FAILED_TRANSACTION = "25P02"
_CONNECTION_STATES = ("08", "57P")
_UNAVAILABLE_STATES = (*_CONNECTION_STATES, "53", "25006")
"""Lost, out of resources, or read-only as a standby is that has not been promoted yet."""

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


def entered(source: Source, call: Call[T], *, alone: bool) -> Flow[tuple[Unit, T]]:
    """Make the first call, in a transaction that goes on or, `alone`, in one of its own; return the open unit too.

    Nothing else has been done yet, and the call does no more if it is made twice (a reservation keeps its token), so it
    can be tried again in a fresh transaction after a serialization failure, and on another connection where one was
    lost before it acknowledged.
    """
    for tries_left in reversed(range(MAX_TRIES)):
        unit = yield from open_unit(source)
        try:
            return unit, (yield partial(unit.once if alone else unit.begin, call))
        except BaseException as error:
            yield from undo(unit, error)
            yield unit.close
            lost = source.shared and _is_lost_connection(error)
            if not tries_left or not (lost or is_serialization_failure(error)):
                raise
            _log.debug("entry.repeated", extra={"idem_error": type(error).__name__})
    raise AssertionError("the last try returns or raises")


def repeatable_call(source: Source, call: Call[T]) -> Flow[T]:
    """Make a call that does no more if it is made twice, in a transaction of its own."""
    unit, answer = yield from entered(source, call, alone=True)
    yield unit.close
    return answer


def require_intact(unit: Unit) -> None:
    """Refuse to commit what is left where the application has rolled back, and with it what was done at entry."""
    if unit.intact() is False:
        raise _rolled_back()


def commit(unit: Unit) -> Flow[None]:
    """Commit, or refuse to where the work would be rolled back instead.

    COMMIT of a transaction whose failed statement was hidden is a rollback, which says nothing. Where the driver cannot
    tell, a last call does, after all that the application does at its end: the server refuses any call there.
    """
    require_intact(unit)
    try:
        yield partial(unit.commit, _calls.version() if unit.intact() is None else None)
    except Exception as error:
        if sqlstate_of(error) == _FAILED_TRANSACTION:
            raise _rolled_back() from error
        raise


def is_serialization_failure(error: BaseException) -> bool:
    """Tell whether the transaction may succeed if all of it is run again."""
    return sqlstate_of(error) == _SERIALIZATION_FAILURE


def undo(unit: Unit, error: BaseException) -> Flow[None]:
    """Roll back. Where even that fails the connection is beyond use; the first error matters."""
    try:
        yield unit.rollback
    except Exception as failure:  # noqa: BLE001
        error.add_note(f"pyidem could not roll back either: {type(failure).__name__}: {failure}")


def is_unavailable(error: BaseException) -> bool:
    """Tell whether the database cannot be reached or cannot serve just now, which is no fault of the request."""
    state = sqlstate_of(error)
    if state is not None:
        return state.startswith(_UNAVAILABLE_STATES)
    pool_timeout = any(
        kind.__module__ == "sqlalchemy.exc" and kind.__name__ == "TimeoutError" for kind in type(error).__mro__
    )
    return pool_timeout or isinstance(driver_error(error), OSError) or _is_lost_connection(error)


def _rolled_back() -> NotCompleted:
    return NotCompleted(
        "the transaction was rolled back inside the block",
        hint="To go on after an error, contain the error in a savepoint.",
    )


def _refuse_inside(*, single_transaction: bool) -> None:
    if not single_transaction:
        raise WrongMode(
            "the connection is already in a transaction",
            hint="End it first; or, for atomic mode, join it: on=connection, commit=True or False.",
        )


def _is_lost_connection(error: BaseException) -> bool:
    """Tell whether the server or the network has ended the connection, before or after doing what was asked."""
    if getattr(error, "connection_invalidated", False):
        return True
    state = sqlstate_of(error)
    if state is not None:
        return state.startswith(_CONNECTION_STATES)
    return any(kind.__name__ == "OperationalError" for kind in type(driver_error(error)).__mro__)

"""The protocols of the two modes, each as one flow that reads from top to bottom.

A flow yields its I/O (see `pyidem._drivers`) and so serves both flavours. The decisions are the database's; what is
here is the order of calls, who owns which transaction, and what happens when something breaks in between.
"""

import logging
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from pyidem._adapters import Source, Unit
from pyidem._calls import Call
from pyidem._drivers import BlockFlow, Body, Flow
from pyidem._operations import AtomicOperation, LeasedOperation
from pyidem._transactions import entered, open_unit, require_intact, single_call, undo
from pyidem._types import Reservation

T = TypeVar("T")

_log = logging.getLogger("pyidem")


def atomic(op: AtomicOperation[Any], source: Source, reserve: Call[Reservation]) -> BlockFlow[Any, None]:
    """Reserve, work and answer in one transaction of the block's own: all commit, or nothing happened."""
    unit, reservation = yield from entered(source, reserve, alone=False)
    try:
        op.enter(reservation, unit)
        yield Body(op)
        completion = op.completion()
        if completion is not None:
            require_intact(unit)
        yield partial(unit.commit, completion)
    except BaseException as error:
        yield from undo(unit, error)
        raise
    finally:
        op.leave()
        yield unit.close
    op.settle()


def joined_atomic(
    op: AtomicOperation[Any], unit: Unit, reserve: Call[Reservation], *, commit: bool
) -> BlockFlow[Any, None]:
    """Reserve and answer in the application's transaction, and commit that only if told to."""
    try:
        op.enter((yield partial(unit.begin, reserve)), unit)
        yield Body(op)
        completion = op.completion()
        if commit:
            yield partial(unit.commit, completion)
        elif completion is not None:
            yield partial(unit.call, completion)
    except BaseException as error:
        if commit:
            yield from undo(unit, error)
        raise
    finally:
        op.leave()
        yield unit.close
    op.settle()


def leased(op: LeasedOperation[Any], reserve: Call[Reservation]) -> BlockFlow[Any, None]:
    """Reserve and commit; work without any transaction; answer in another one. If that fails the outcome is unknown."""
    unit, reservation = yield from entered(op.source, reserve, alone=True)
    yield unit.close
    op.enter(reservation)
    if not op.started:
        yield Body(op)
        return
    yield from op.start_heartbeat()
    try:
        yield Body(op)
        yield from op.stop_heartbeat()
        if op.has_answer:
            op.require_owner()
            yield from _complete_alone(op)
        elif not op.finished:
            _log.warning("leased.unfinished", extra=op.names)
            yield from _defer(op, "the block ended without an answer")
    except BaseException as error:
        yield from op.stop_heartbeat()
        yield from _give_up(op, error)
        raise


def leased_transaction(op: LeasedOperation[Any]) -> BlockFlow[Any, None]:
    """The business write and the answer or a checkpoint, in one transaction.

    What is stored of the operation is acknowledged before COMMIT: False says that an earlier transaction has committed
    this very answer or checkpoint, and with it this very work, so what was done here again is rolled back. The call
    locks the row that a heartbeat needs, which therefore pauses.
    """
    op.require_owner()
    with op.in_transaction():
        unit = yield from open_unit(op.source)
        try:
            yield partial(unit.begin, read_committed=True)
            yield Body(unit.handle)
            op.require_owner()
            last_call = op.completion() or op.arrival()
            if last_call is None:
                yield unit.commit
            else:
                yield from op.stop_heartbeat()
                first = yield partial(unit.call, last_call)
                yield unit.commit if first else unit.rollback
                op.settle_transaction()
        except BaseException as error:
            yield from undo(unit, error)
            raise
        finally:
            yield unit.close
            if not op.finished:
                yield from op.start_heartbeat()


def extend(op: LeasedOperation[Any], call: Call[T]) -> Flow[T]:
    """Renew the lease."""
    op.require_owner()
    return (yield from single_call(op.source, call))


def give_up(op: LeasedOperation[Any], call: Call[bool], how: str) -> Flow[bool]:
    """Release or defer, as the application wants it."""
    op.require_owner()
    yield from op.stop_heartbeat()
    result = yield from single_call(op.source, call)
    op.give_up(how)
    return result


def refuse_commit(commit: bool | None) -> None:
    """Refuse `commit` where the block owns its transaction anyway."""
    if commit is not None:
        raise TypeError("commit= goes with on=: a block with a transaction of its own always commits it")


def require_commit(commit: bool | None) -> bool:
    """Require an answer to the question who ends a joined transaction."""
    if commit is None:
        raise TypeError("on= needs commit=True (the block ends the transaction) or commit=False (you do)")
    return commit


def require_shared(source: Source, heartbeat: bool | timedelta) -> Source:
    """Refuse a heartbeat that would have no connection of its own."""
    if heartbeat is not False and not source.shared:
        raise TypeError("a heartbeat needs a second connection: give Idem a pool, an engine or a sessionmaker")
    return source


def _complete_alone(op: LeasedOperation[Any]) -> Flow[None]:
    """Store an answer that was given outside any `op.transaction()`."""
    completion = op.completion()
    assert completion is not None
    yield from single_call(op.source, completion)
    op.settle()


def _defer(op: LeasedOperation[Any], reason: str) -> Flow[None]:
    yield from single_call(op.source, op.deferral(reason))
    op.give_up("deferred")


def _give_up(op: LeasedOperation[Any], error: BaseException) -> Flow[None]:
    """Say that the outcome is unknown. Where that fails too the lease ends by itself; the first error matters."""
    if op.finished or op.lost:
        return
    try:
        yield from _defer(op, type(error).__name__)
    except Exception as failure:  # noqa: BLE001 - it must not hide the error that led here
        _log.warning("leased.defer_failed", extra=op.names, exc_info=failure)
        error.add_note(f"pyidem could not defer the reservation either: {type(failure).__name__}: {failure}")

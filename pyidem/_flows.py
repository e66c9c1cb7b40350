"""The protocols of the two modes, each as one flow that reads from top to bottom.

A flow yields its I/O (see `pyidem._drivers`) and so serves both flavours. The decisions are the database's; what is
here is the order of calls, who owns which transaction, and what happens when something breaks in between.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID, uuid5

from pyidem import _calls
from pyidem._adapters import Source, Unit
from pyidem._calls import Call
from pyidem._drivers import BlockFlow, Body, Flow
from pyidem._errors import LostReservation, NotCompleted, NotKept, reason_of
from pyidem._heartbeat import require_possible
from pyidem._operations import AtomicOperation, LeasedOperation, Operation
from pyidem._patience import Patience
from pyidem._transactions import commit, entered, open_unit, repeatable_call, require_intact, single_call, undo
from pyidem._types import LapsedReservation

_NEVER = datetime.max.replace(tzinfo=UTC)

_REPEATED = (False, "repeated")
"""What says that an earlier transaction has committed this very answer or checkpoint."""

O = TypeVar("O", bound=LeasedOperation[Any])  # noqa: E741 - as short as the others

_log = logging.getLogger("pyidem")


def atomic(
    op: AtomicOperation[Any], source: Source, reserve: Call[Any], patience: Patience | None
) -> BlockFlow[Any, None]:
    """Reserve, work and answer in one transaction of the block's own: all commit, or nothing happened."""
    unit, reservation = yield from _reserved(source, reserve, patience, alone=False)
    try:
        op.enter(reservation, unit)
        yield Body(op)
        completion = op.completion()
        if op.has_answer:
            require_intact(unit)
        verdict = yield from _committed(op, unit, completion)
    except BaseException as error:
        yield from undo(unit, error)
        raise
    finally:
        op.leave()
        yield unit.close
    op.settle(verdict)


def joined_atomic(op: AtomicOperation[Any], unit: Unit, reserve: Call[Any], *, commit: bool) -> BlockFlow[Any, None]:
    """Reserve and answer in the application's transaction, and commit that only if told to.

    An answer that the policy does not keep has to be rolled back, by the application where it is to commit: what tells
    it so brings the answer along.
    """
    verdict = None
    try:
        op.enter((yield partial(unit.begin, reserve)), unit)
        yield Body(op)
        completion = op.completion()
        if commit:
            verdict = yield from _committed(op, unit, completion)
        elif completion is not None:
            verdict = yield partial(unit.call, completion)
    except BaseException as error:
        if commit:
            yield from undo(unit, error)
        elif isinstance(error, NotKept):
            error.answered_by(op.answer)
        raise
    finally:
        op.leave()
        yield unit.close
    op.settle(verdict)


def leased(op: LeasedOperation[Any], reserve: Call[Any], patience: Patience | None) -> BlockFlow[Any, None]:
    """Reserve and commit; work without any transaction; answer in another one. If that fails the outcome is unknown."""
    try:
        unit, reservation = yield from _reserved(op.source, reserve, patience, alone=True)
        yield unit.close
    except Exception:
        raise
    except BaseException as error:
        yield from _never_begun(op, reserve, error)
        raise
    op.enter(reservation)
    if not op.started:
        yield Body(op)
        return
    yield from held(op, "the block")


def claimed(
    source: Source, claim: Call[list[LapsedReservation]], make_op: Callable[..., LeasedOperation[Any]]
) -> BlockFlow[Any, None]:
    """Claim a lapsed key and go on with it as its owner would. Bind None where there is nothing to be claimed."""
    lapsed = yield from single_call(source, claim)
    if lapsed:
        yield from held(op_of(lapsed[0], make_op), "the block")
    else:
        yield Body(None)


def op_of(lapsed: LapsedReservation, make_op: Callable[..., O]) -> O:
    """Return what stands for a claim; `make_op` takes scope, key and token."""
    op = make_op(lapsed.scope, lapsed.key, lapsed.token)
    op.enter_claim(lapsed)
    return op


def held(op: LeasedOperation[Any], what: str) -> BlockFlow[Any, None]:
    """Work on a key that is owned, and end that with the answer, or else by saying that the outcome is unknown."""
    yield from op.start_heartbeat()
    try:
        yield Body(op)
        yield from op.end_heartbeat()
        if op.has_answer:
            op.require_owner()
            yield from _complete_alone(op)
        elif not op.finished:
            _log.warning("leased.unfinished", extra=op.names)
            yield from _defer(op, f"{what} ended without an answer")
    except BaseException as error:
        yield from op.end_heartbeat()
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
            verdict = None
            if last_call is not None:
                require_intact(unit)
                yield from op.stop_heartbeat()
                verdict = yield partial(unit.call, last_call)
            if verdict in _REPEATED:
                yield unit.rollback
            else:
                yield from commit(unit)
            op.settle_transaction(verdict)
        except BaseException as error:
            yield from undo(unit, error)
            raise
        finally:
            yield unit.close
            if not op.finished:
                yield from op.start_heartbeat()


def extend(op: LeasedOperation[Any], call: Call[datetime]) -> Flow[datetime]:
    """Renew the lease. Without a key there is none, which never ends."""
    op.require_owner()
    return (yield from single_call(op.source, call)) if op.protected else _NEVER


def give_up(op: LeasedOperation[Any], call: Call[bool], how: str) -> Flow[bool]:
    """Release or defer, as the application wants it."""
    op.require_owner()
    yield from op.stop_heartbeat()
    result = not op.protected or (yield from single_call(op.source, call))
    op.give_up(how)
    return result


def downstream_key(op: Operation[Any], step: str, make: Callable[[Call[UUID]], Flow[UUID]]) -> Flow[UUID]:
    """Ask for the key of one of several downstream calls; without a key of its own, a request has new ones."""
    key = op.downstream_key()
    if not op.protected:
        return uuid5(key, step)
    return (yield from make(_calls.downstream_key(op.scope, op.key, step)))


def refuse_commit(commit: bool | None) -> None:
    """Refuse `commit` where the block owns its transaction anyway."""
    if commit is not None:
        raise TypeError("commit= goes with on=: a block with a transaction of its own always commits it")


def require_commit(commit: bool | None) -> bool:
    """Require an answer to the question who ends a joined transaction."""
    if commit is None:
        raise TypeError("on= needs commit=True (the block ends the transaction) or commit=False (you do)")
    return commit


def patience(wait: timedelta | None, sleep: Callable[[float], Any]) -> Patience | None:
    """Return how to wait for another attempt, if at all."""
    return None if wait is None else Patience(_calls.interval("wait", wait), sleep)


def refuse_wait(wait: timedelta | None) -> None:
    """Refuse to wait inside a transaction of the application's, which would stay open meanwhile."""
    if wait is not None:
        raise TypeError("wait= goes without on=: nothing is to be held while waiting")


def require_shared(source: Source, heartbeat: bool | timedelta, lease: timedelta | None = None) -> Source:
    """Return a source on which a heartbeat is possible, if one is wanted."""
    require_possible(heartbeat, lease, shared=source.shared)
    return source


def _complete_alone(op: LeasedOperation[Any]) -> Flow[None]:
    """Store an answer that was given outside any `op.transaction()`."""
    completion = op.completion()
    verdict = None
    if completion is not None:
        verdict = yield from repeatable_call(op.source, completion)
    op.settle(verdict)


def _defer(op: LeasedOperation[Any], reason: str) -> Flow[None]:
    op.failure = reason
    if op.protected:
        yield from single_call(op.source, op.deferral(reason))
    op.give_up("deferred")


def _reserved(source: Source, reserve: Call[Any], patience: Patience | None, *, alone: bool) -> Flow[tuple[Unit, Any]]:
    """Reserve; where another attempt is at work, look again from time to time, holding nothing meanwhile."""
    for pause in patience.pauses() if patience else ():
        unit, reservation = yield from entered(source, reserve, alone=alone)
        if reservation.outcome != "in_progress":
            return unit, reservation
        try:
            if not alone:
                yield unit.rollback
        finally:
            yield unit.close
        yield pause
    return (yield from entered(source, reserve, alone=alone))


def _committed(op: AtomicOperation[Any], unit: Unit, completion: Call[Any] | None) -> Flow[bool | str | None]:
    """Commit with the answer, or roll back where the policy does not keep it.

    Where the two share a round trip the database refuses COMMIT, since nothing was stored; elsewhere its answer comes
    first.
    """
    try:
        return (yield partial(unit.commit, completion))  # type: ignore[no-any-return]
    except NotCompleted as refusal:
        if not op.is_not_kept(refusal):
            raise
        yield from undo(unit, refusal)
        return "rollback"


def _never_begun(op: LeasedOperation[Any], reserve: Call[Any], error: BaseException) -> Flow[None]:
    """Give the key back where a cancellation has cut the reservation short: it may be committed all the same.

    Made again it tells, since it keeps its token. What an earlier attempt has left open stays open.
    """
    try:
        reservation = yield from single_call(op.source, reserve)
        op.enter(reservation)
        if not op.started or not op.protected:
            return
        untouched = op.attempt == 1 and op.recovery_point is None
        give_back = _calls.release(op.scope, op.key, op.token) if untouched else op.deferral(reason_of(error))
        yield from single_call(op.source, give_back)
    except Exception as failure:  # noqa: BLE001 - it must not hide the error that led here
        _log.warning("leased.defer_failed", extra=op.names, exc_info=failure)


def _give_up(op: LeasedOperation[Any], error: BaseException) -> Flow[None]:
    """Say that the outcome is unknown. Where that fails too the lease ends by itself; the first error matters."""
    if op.finished or op.lost:
        return
    try:
        yield from _defer(op, reason_of(error))
    except Exception as failure:  # noqa: BLE001 - it must not hide the error that led here
        if isinstance(failure, LostReservation) and isinstance(error, LostReservation):
            return  # which says so already
        _log.warning("leased.defer_failed", extra=op.names, exc_info=failure)
        error.add_note(f"pyidem could not defer the reservation either: {type(failure).__name__}: {failure}")

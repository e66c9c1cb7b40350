"""The flows that handle a message once: its mark and its effect commit in one transaction."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from pyidem._adapters import Source, Unit
from pyidem._calls import Call
from pyidem._drivers import BlockFlow, Body, Flow, run_around, run_around_async
from pyidem._errors import InProgress
from pyidem._transactions import MAX_TRIES, commit, entered, is_serialization_failure, undo
from pyidem._types import Handled

V = TypeVar("V")


def require_flavour(
    function: Callable[..., Any], *, asynchronous: bool, what: str = "handler", owner: str = "Idem.consumer"
) -> None:
    """Refuse an asynchronous function where nobody would await it, and a synchronous one in the event loop."""
    called = getattr(function, "__call__", None)  # noqa: B004
    given = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
    if given is not asynchronous:
        raise TypeError(
            f"Async{owner} takes an async def {what}" if asynchronous else f"an async {what} needs Async{owner}"
        )


def marked(unit: Unit, mark: Call[str]) -> Flow[bool]:
    """Mark a message in the application's transaction; tell whether this is its first delivery."""
    return _is_first((yield partial(unit.begin, mark)))


def joined(unit: Unit, call: Call[V]) -> Flow[V]:
    """Make any other call that belongs to the application's transaction, and has no sense outside one."""
    return (yield partial(unit.begin, call))  # type: ignore[no-any-return]


def handled(source: Source, mark: Call[str], handler: Callable[[Any], V]) -> Handled[V]:
    """Mark a message and handle it, in one transaction; all of it again after a serialization failure."""
    for tries_left in reversed(range(MAX_TRIES)):
        try:
            return run_around(_delivery(source, mark), handler)
        except Exception as error:
            if not tries_left or not is_serialization_failure(error):
                raise
    raise AssertionError("the last try returns or raises")


async def handled_async(source: Source, mark: Call[str], handler: Callable[[Any], Awaitable[V]]) -> Handled[V]:
    """Do the same with an asynchronous handler."""
    for tries_left in reversed(range(MAX_TRIES)):
        try:
            return await run_around_async(_delivery(source, mark), handler)
        except Exception as error:
            if not tries_left or not is_serialization_failure(error):
                raise
    raise AssertionError("the last try returns or raises")


def _delivery(source: Source, mark: Call[str]) -> BlockFlow[Any, Handled[Any]]:
    """Mark and, the first time, let the handler run in the same transaction."""
    unit, outcome = yield from entered(source, mark, alone=False)
    try:
        if not _is_first(outcome):
            yield unit.rollback
            return Handled(ran=False)
        value = yield Body(unit.handle)
        yield from commit(unit)
        return Handled(ran=True, value=value)
    except BaseException as error:
        yield from undo(unit, error)
        raise
    finally:
        yield unit.close


def _is_first(outcome: str) -> bool:
    if outcome == "in_progress":
        raise InProgress(
            "Another transaction is handling this message, or its outcome is not known.",
            hint="Do not acknowledge the message; have it delivered again later.",
        )
    return outcome == "first"

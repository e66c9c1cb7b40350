"""What runs the flows: one driver for each flavour, the only place where sync and async part.

A flow is a generator that yields its I/O as calls still to be made, and is sent their results. It reads from top to
bottom like the protocol it stands for, and knows nothing of await. A flow for a `with` block yields `Body` where the
block's own statements run; an exception there is thrown in at that point.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, TypeVar

from pyidem._errors import translate, unready

T = TypeVar("T")
R = TypeVar("R")

Step = Callable[[], Any]
"""One piece of I/O still to be done: what it returns (or, async, what awaiting that returns) is sent to the flow."""

_log = logging.getLogger("pyidem")


@dataclass(frozen=True, slots=True)
class Body(Generic[T]):
    """The place in a flow where the statements of the `with` block run; `value` is what `as` binds."""

    value: T


Flow = Generator[Step, Any, R]
BlockFlow = Generator[Step | Body[T], Any, R]


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a flow, with its result."""

    result: Any


def run(flow: Flow[R]) -> R:
    """Run a flow to its end and return its result."""
    reached = _advance(flow, partial(flow.send, None))
    assert isinstance(reached, _End)
    return reached.result  # type: ignore[no-any-return]


def run_around(flow: BlockFlow[T, R], work: Callable[[T], Any]) -> R:
    """Run a flow to its end and return its result. If it comes to a body, `work` is that; its result is sent."""
    reached = _advance(flow, partial(flow.send, None))
    if isinstance(reached, Body):
        try:
            result = work(reached.value)
        except BaseException as error:  # noqa: BLE001 - what an error means is for the flow to say
            resume = partial(flow.throw, error)
        else:
            resume = partial(flow.send, result)
        reached = _advance(flow, resume)
    assert isinstance(reached, _End)
    return reached.result  # type: ignore[no-any-return]


class Block(Generic[T]):
    """A flow as a context manager."""

    def __init__(self, flow: BlockFlow[T, None]) -> None:
        self._flow = flow

    def __enter__(self) -> T:
        return _body(_advance(self._flow, partial(self._flow.send, None)))  # type: ignore[no-any-return]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            _advance(self._flow, _resumption(self._flow, error))
        except BaseException as raised:
            if not _is_same(raised, error):
                raise


async def run_async(flow: Flow[R]) -> R:
    """Run a flow to its end and return its result."""
    reached = await _advance_async(flow, partial(flow.send, None))
    assert isinstance(reached, _End)
    return reached.result  # type: ignore[no-any-return]


async def run_around_async(flow: BlockFlow[T, R], work: Callable[[T], Awaitable[Any]]) -> R:
    """Do the same with asynchronous work. As with `AsyncBlock`, cancellation does not reach what follows it."""
    reached = await _advance_async(flow, partial(flow.send, None))
    if isinstance(reached, Body):
        try:
            result = await work(reached.value)
        except BaseException as error:  # noqa: BLE001
            resume = partial(flow.throw, error)
        else:
            resume = partial(flow.send, result)
        reached = await _advance_shielded(flow, resume)
    assert isinstance(reached, _End)
    return reached.result  # type: ignore[no-any-return]


class AsyncBlock(Generic[T]):
    """A flow as an asynchronous context manager.

    Its end is in a task of its own, which cancellation does not reach: an answer being stored is stored, a connection
    is given back whole.
    """

    def __init__(self, flow: BlockFlow[T, None]) -> None:
        self._flow = flow

    async def __aenter__(self) -> T:
        return _body(await _advance_async(self._flow, partial(self._flow.send, None)))  # type: ignore[no-any-return]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await _advance_shielded(self._flow, _resumption(self._flow, error))
        except BaseException as raised:
            if not _is_same(raised, error):
                raise


_AnyFlow = Generator[Any, Any, Any]
_Resume = Callable[[], Any]


def _advance(flow: _AnyFlow, resume: _Resume) -> Body[Any] | _End:
    """Do the steps of a flow until its body or its end."""
    while True:
        try:
            step = resume()
        except StopIteration as stop:
            return _End(stop.value)
        if isinstance(step, Body):
            return step
        try:
            result = step()
        except BaseException as error:  # noqa: BLE001 - what an error means is for the flow to say
            resume = partial(flow.throw, _own(error))
        else:
            resume = partial(flow.send, result)


async def _advance_async(flow: _AnyFlow, resume: _Resume) -> Body[Any] | _End:
    while True:
        try:
            step = resume()
        except StopIteration as stop:
            return _End(stop.value)
        if isinstance(step, Body):
            return step
        try:
            result = await step()
        except asyncio.CancelledError as error:
            # what is left to do is tidying up, which must not be cut short as well
            return await _advance_shielded(flow, partial(flow.throw, error))
        except BaseException as error:  # noqa: BLE001
            resume = partial(flow.throw, _own(error))
        else:
            resume = partial(flow.send, result)


_detached: set[asyncio.Task[Any]] = set()


async def _advance_shielded(flow: _AnyFlow, resume: _Resume) -> Body[Any] | _End:
    """Advance in a task that the caller's cancellation does not reach.

    One cancellation is held back until the task is done. A second one is obeyed at once, and the task goes on alone.
    """
    task = asyncio.ensure_future(_contained(flow, resume))
    try:
        reached = await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            _detached.add(task)
            task.add_done_callback(_detached_done)
            with suppress(asyncio.CancelledError), _out_of_reach():
                await asyncio.wait({task})
        raise
    if isinstance(reached, _Exit):
        raise reached.error
    return reached


@dataclass(frozen=True, slots=True)
class _Exit:
    """What ends the program. Raised in a task it would end the event loop before the caller's own code has seen it."""

    error: KeyboardInterrupt | SystemExit


async def _contained(flow: _AnyFlow, resume: _Resume) -> Body[Any] | _End | _Exit:
    try:
        return await _advance_async(flow, resume)
    except (KeyboardInterrupt, SystemExit) as error:
        return _Exit(error)


def _out_of_reach() -> AbstractContextManager[object]:
    """Keep anyio out, whose scopes repeat one cancellation until it is obeyed; nobody is in one unless it is loaded."""
    anyio = sys.modules.get("anyio")
    return nullcontext() if anyio is None else anyio.CancelScope(shield=True)


def _detached_done(task: asyncio.Task[Any]) -> None:
    _detached.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("block.exit_failed", exc_info=error)


def _body(reached: Body[Any] | _End) -> Any:
    if isinstance(reached, _End):
        raise RuntimeError("a block can be entered once only: ask for a new one for another attempt")  # noqa: TRY004
    return reached.value


def _resumption(flow: _AnyFlow, error: BaseException | None) -> _Resume:
    return partial(flow.send, None) if error is None else partial(flow.throw, error)


def _own(error: BaseException) -> BaseException:
    """Return pyidem's own error where the SQLSTATE is one of ours, or our call is unknown, caused by the driver's."""
    translated = unready(error) or translate(error)
    if translated is not error:
        translated.__cause__ = error
    return translated


def _is_same(raised: BaseException, error: BaseException | None) -> bool:
    """Tell whether the body's own error has come out of the flow, which Python then goes on raising by itself.

    A StopIteration comes out of a generator wrapped, a cancellation comes out of a task as a new one.
    """
    if error is None:
        return False
    both_cancelled = isinstance(raised, asyncio.CancelledError) and isinstance(error, asyncio.CancelledError)
    wrapped = isinstance(error, StopIteration) and raised.__cause__ is error
    return raised is error or both_cancelled or wrapped

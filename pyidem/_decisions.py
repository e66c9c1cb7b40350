"""The hook for decisions: what the database has answered, told to whoever counts or logs it.

A source and its units are wrapped, so that whatever makes a call, in either flavour, is seen in one place. Without a
hook nothing is wrapped.
"""

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from pyidem._adapters import Source, Unit
from pyidem._calls import Call
from pyidem._errors import NotKept, sqlstate_of
from pyidem._types import HttpReservation, Mark, Reservation

_log = logging.getLogger("pyidem")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one key, or of one request before it came to that. It names no key and holds no body.

    `name` is the SQL function that decided, `request` for what the middleware refuses by itself, or `sweep` for what a
    sweeper has made of a key: completed, released, deferred, failed or lost. `outcome` is what
    that function returns, in one word; `error` where it raised, and `sqlstate` then says which. `attempt` comes with
    reserve. `seconds` is how long the answer took, with BEGIN or COMMIT where they share its round trip.
    """

    name: str
    scope: str | None
    outcome: str
    attempt: int | None = None
    seconds: float = 0.0
    sqlstate: str | None = None


OnDecision = Callable[[Decision], object]

_DECIDED_BY_BOOLEAN = {
    "complete": ("stored", "repeated"),
    "release": ("released", "repeated"),
    "defer": ("deferred", "deferred"),
    "checkpoint": ("reached", "repeated"),
}
_DECIDED = {"reserve", "http_reserve", "http_complete", "run", "once", "once_many", "once_undo", "extend"}
_NAMES = _DECIDED | _DECIDED_BY_BOOLEAN.keys()
_NOT_COMPLETED = "IK005"


def tell(hook: OnDecision | None, decision: Decision) -> None:
    """Tell the hook. What it raises is logged, and changes nothing: the decision is made."""
    if hook is not None:
        try:
            hook(decision)
        except Exception:  # noqa: BLE001 - whatever an application does there
            _log.exception("decision.hook_failed")


def observed(source: Any, hook: OnDecision | None) -> Any:
    """Return the source with every decision of its units told to the hook, where there is one."""
    return source if hook is None else _ObservedSource(source, hook)


class _ObservedSource:
    def __init__(self, source: Source, hook: OnDecision) -> None:
        self._source = source
        self._hook = hook
        self.shared = source.shared

    def open(self) -> Any:
        unit = self._source.open()
        return self._opened(unit) if inspect.isawaitable(unit) else _ObservedUnit(unit, self._hook)

    def join(self) -> Unit:
        return _ObservedUnit(self._source.join(), self._hook)  # type: ignore[attr-defined]

    async def _opened(self, unit: Awaitable[Unit]) -> Unit:
        return _ObservedUnit(await unit, self._hook)


class _ObservedUnit:
    """A unit whose calls are timed and told."""

    def __init__(self, unit: Unit, hook: OnDecision) -> None:
        self.handle = unit.handle
        self.inside = unit.inside
        self.intact = unit.intact
        self.rollback = unit.rollback
        self.close = unit.close
        self._unit = unit
        self._hook = hook

    def begin(self, call: Call[Any] | None = None, *, read_committed: bool = False) -> Any:
        return self._seen(call, partial(self._unit.begin, call, read_committed=read_committed))

    def call(self, call: Call[Any]) -> Any:
        return self._seen(call, partial(self._unit.call, call))

    def commit(self, call: Call[Any] | None = None) -> Any:
        return self._seen(call, partial(self._unit.commit, call))

    def once(self, call: Call[Any]) -> Any:
        return self._seen(call, partial(self._unit.once, call))

    def _seen(self, call: Call[Any] | None, make: Callable[[], Any]) -> Any:
        if call is None or call.name not in _NAMES:
            return make()
        began = monotonic()
        try:
            answer = make()
        except BaseException as error:
            self._tell_error(call, began, error)
            raise
        if inspect.isawaitable(answer):
            return self._awaited(call, began, answer)
        self._tell_answer(call, began, answer)
        return answer

    async def _awaited(self, call: Call[Any], began: float, answering: Awaitable[Any]) -> Any:
        try:
            answer = await answering
        except BaseException as error:
            self._tell_error(call, began, error)
            raise
        self._tell_answer(call, began, answer)
        return answer

    def _tell_answer(self, call: Call[Any], began: float, answer: Any) -> None:
        seconds = monotonic() - began
        for outcome, attempt in _read(call.name, answer):
            tell(self._hook, Decision(call.name, call.params.get("scope"), outcome, attempt, seconds))

    def _tell_error(self, call: Call[Any], began: float, error: BaseException) -> None:
        state = sqlstate_of(error) or getattr(error, "sqlstate", None) or None
        not_kept = isinstance(error, NotKept) or (call.name == "http_complete" and state == _NOT_COMPLETED)
        outcome, state = ("rollback", None) if not_kept else ("error", state)
        tell(self._hook, Decision(call.name, call.params.get("scope"), outcome, None, monotonic() - began, state))


def _read(name: str, answer: Any) -> list[tuple[str, int | None]]:
    match answer:
        case Reservation() | HttpReservation():
            return [(answer.outcome, answer.attempt)]
        case str():
            return [(answer, None)]
        case bool():
            return [(_DECIDED_BY_BOOLEAN[name][0 if answer else 1], None)]
        case list():
            return [(mark.outcome, None) for mark in answer if isinstance(mark, Mark)]
        case int():
            return [("undone", None)]
        case _:
            return [("extended", None)]

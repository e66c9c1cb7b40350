"""What a sweeper does, in the part that needs no flavour: claim, let the resolver work, count, wait, stop.

Nothing is shared between sweepers but the database, which hands out each key once, so any number of them may run. A
sweeper that is killed leaves keys that lapse again when their lease is over.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import partial
from itertools import repeat
from random import uniform
from time import monotonic
from typing import Any, Generic, TypeVar

from pyidem import _calls
from pyidem._adapters import Source
from pyidem._decisions import Decision, OnDecision, tell
from pyidem._drivers import BlockFlow, Flow
from pyidem._errors import LostReservation, sqlstate_of
from pyidem._flows import held, op_of, require_shared
from pyidem._operations import LeasedOperation
from pyidem._transactions import is_unavailable, single_call
from pyidem._types import LapsedReservation

O = TypeVar("O", bound=LeasedOperation[Any])  # noqa: E741 - as short as the others

_LONGEST_PAUSE = 60.0
_PASSING_STATES = ("40", "55", "57")
"""Serialization failures and deadlocks, locks not available, statements that were cancelled."""
_LEVELS = {"completed": logging.INFO, "released": logging.INFO, "deferred": logging.INFO}

_log = logging.getLogger("pyidem")


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep has come to, in numbers of keys."""

    completed: int = 0
    released: int = 0
    deferred: int = 0
    """The resolver has found out nothing yet, and has said so."""
    failed: int = 0
    """The resolver raised, took too long, or ended without an answer. They are deferred, too."""
    lost: int = 0
    """The claim has passed to somebody else meanwhile."""

    @property
    def claimed(self) -> int:
        """How many there were in all."""
        return sum(getattr(self, each.name) for each in fields(self))

    @property
    def settled(self) -> int:
        """How many are settled for good."""
        return self.completed + self.released


class Sweeping(ABC, Generic[O]):
    """One sweeper: settles lapsed keys, one after the other or some at a time."""

    def __init__(
        self,
        source: Source,
        make_op: Callable[..., O],
        *,
        policy: str | None,
        scope: str | None,
        lease: timedelta,
        timeout: timedelta | None,
        concurrency: int,
        http: bool,
        on_decision: OnDecision | None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        self._source = require_shared(source, heartbeat=True)
        self._make_op = partial(make_op, source=source, lease=lease, heartbeat=True, http=http)
        self._policy = policy
        self._scope = scope
        self._lease = lease
        self._timeout = None if timeout is None else timeout.total_seconds()
        self._concurrency = concurrency
        self._on_decision = on_decision
        self._stopping = False
        self._counts: dict[str, int] = {}
        self._counting = threading.Lock()

    def stop(self) -> None:
        """Claim no more, for good: `run` and `run_once` end when what is being settled has ended. From any thread."""
        self._stopping = True
        self._wake()

    def sweep(self, limit: int | None) -> Flow[Swept]:
        """Settle what can be claimed now, at most `limit` keys."""
        before = self._swept()
        yield from self._one_pass(limit)
        return _difference(self._swept(), before)

    def sweep_on(self, every: timedelta) -> Flow[Swept]:
        """Sweep again and again, until told to stop; wait longer each time while the database cannot be reached."""
        before = self._swept()
        failures = 0
        while not self._stopping:
            pause = every.total_seconds()
            try:
                yield from self._one_pass(None)
                failures = 0
            except Exception as error:
                if not _may_pass(error):
                    raise
                failures += 1
                pause = min(max(pause, 1.0) * 2 ** min(failures, 10), _LONGEST_PAUSE) * uniform(0.5, 1)  # noqa: S311
                _log.warning("sweeper.unreachable", extra={"idem_pause": round(pause, 1)}, exc_info=error)
            if not self._stopping:
                yield partial(self._pause, pause)
        return _difference(self._swept(), before)

    def settle_next(self) -> BlockFlow[O, str | None]:
        """Claim one key and let the resolver have it; say how that ended, or return None where there was none."""
        claim = _calls.claim_lapsed(1, lease=self._lease, policy=self._policy, scope=self._scope)
        lapsed = yield from single_call(self._source, claim)
        if not lapsed:
            return None
        op = op_of(lapsed[0], self._make_op)
        began = monotonic()
        error: Exception | None = None
        try:
            yield from held(op, "the resolver")
        except Exception as raised:  # noqa: BLE001 - the key is deferred, and the next one is waiting
            error = raised
        ending = _ending(op, error)
        self._note(ending, op, lapsed[0], error, seconds=monotonic() - began)
        return ending

    def _one_pass(self, limit: int | None) -> Flow[None]:
        budget: Iterable[Any] = repeat(None) if limit is None else iter(range(limit))
        yield partial(self._side_by_side, [self._work_off(budget) for _ in range(self._concurrency)])

    def _work_off(self, budget: Iterable[Any]) -> Flow[None]:
        """Settle one key after the other until there are no more, or the budget is used up, which others use too."""
        for _ in budget:
            if self._stopping or (yield self._settle) is None:
                return

    def _note(self, ending: str, op: O, lapsed: LapsedReservation, error: Exception | None, *, seconds: float) -> None:
        """Count it, log it, and tell the application."""
        with self._counting:
            self._counts[ending] = self._counts.get(ending, 0) + 1
        about = {
            "idem_scope": lapsed.scope,
            "idem_key": lapsed.key,
            "idem_policy": lapsed.policy,
            "idem_attempt": lapsed.attempt,
            "idem_claims": lapsed.claims,
            "idem_seconds": round(seconds, 3),
            **({} if op.failure is None else {"idem_reason": op.failure}),
        }
        _log.log(_LEVELS.get(ending, logging.WARNING), f"sweeper.{ending}", extra=about, exc_info=error)
        tell(self._on_decision, Decision("sweep", lapsed.scope, ending, lapsed.attempt, seconds))

    def _swept(self) -> Swept:
        with self._counting:
            return Swept(**self._counts)

    @abstractmethod
    def _settle(self) -> Any:
        """Run `settle_next` with the resolver as its body."""

    @abstractmethod
    def _side_by_side(self, flows: list[Flow[None]]) -> Any:
        """Run some flows at the same time; raise what the first of them raised once all have ended."""

    @abstractmethod
    def _pause(self, seconds: float) -> Any:
        """Wait, until woken."""

    @abstractmethod
    def _wake(self) -> None:
        """End the pause; from any thread, and in the handler of a signal."""


def _ending(op: LeasedOperation[Any], error: Exception | None) -> str:
    """Tell how the work on a key has ended, whatever the resolver did after that."""
    ended = op.ending
    if ended == "completed":
        return ended
    if op.lost or isinstance(error, LostReservation):
        return "lost"
    return "failed" if ended is None or op.failure is not None else ended


def _may_pass(error: Exception) -> bool:
    """Tell whether the same may succeed a little later, as when the server restarts or has too much to do."""
    return is_unavailable(error) or (sqlstate_of(error) or "").startswith(_PASSING_STATES)


def _difference(after: Swept, before: Swept) -> Swept:
    names = [each.name for each in fields(Swept)]
    return Swept(**{name: getattr(after, name) - getattr(before, name) for name in names})

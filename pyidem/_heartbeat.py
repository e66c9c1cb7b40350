"""The heartbeat of a leased reservation: says from time to time that its owner is alive.

It has a connection of its own for each beat. It stops before the completion: `stop` waits for a beat that is being
sent, but not for one that still waits for a connection, since the pool's last one may be the caller's.
"""

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, timedelta
from functools import partial
from time import monotonic
from typing import Any

from pyidem._adapters import Source
from pyidem._calls import Call, interval
from pyidem._drivers import Flow, run, run_async
from pyidem._errors import LostReservation, NoSuchReservation
from pyidem._transactions import undo
from pyidem._types import HttpReservation, Reservation

_BEATS_PER_LEASE = 3
_SHORTEST_LEASE = timedelta(seconds=3)
"""Assumed where the length of the lease cannot be told; beating too often does no harm."""

_log = logging.getLogger("pyidem")


def require_possible(heartbeat: bool | timedelta, lease: timedelta | None, *, shared: bool) -> None:
    """Refuse a heartbeat without a pause, or after the end of the lease given with it, or with no second connection."""
    interval("lease", lease)
    if not isinstance(heartbeat, bool | timedelta):
        raise TypeError(f"heartbeat must be a bool or a timedelta, not {type(heartbeat).__name__}")
    if isinstance(heartbeat, timedelta) and heartbeat <= timedelta(0):
        raise ValueError("the time between two heartbeats must be above zero")
    if isinstance(heartbeat, timedelta) and lease is not None and heartbeat >= lease:
        raise ValueError("the time between two heartbeats must be shorter than the lease")
    if heartbeat is not False and not shared:
        raise TypeError("a heartbeat needs a second connection: give Idem a pool, an engine or a sessionmaker")


class Heartbeat(ABC):
    """Extends the lease every `interval`; `lost` once the database has said that the reservation is another's.

    One that `learns` was told no length of the lease, and takes it from the first answer.
    """

    def __init__(
        self,
        source: Source,
        extend: Call[timedelta],
        *,
        lease: timedelta,
        interval: timedelta,
        names: Mapping[str, Any],
        learns: bool = False,
    ) -> None:
        self.lost = False
        self._source = source
        self._extend = extend
        self._learns = learns
        self._lease = lease.total_seconds()
        self._interval = interval.total_seconds()
        self._names = names
        self._stopped = True
        self._retired = False
        self._alive_until = 0.0
        self._sending: Any = self._new_lock()

    @abstractmethod
    def start(self) -> Any:
        """Begin to beat, unless it does already."""

    def stop(self) -> Flow[None]:
        """Return when no beat is being sent and no more will be."""
        yield self._sending.acquire
        self._stopped = True
        self._sending.release()
        yield self._end

    def retire(self) -> None:
        """Never start again."""
        self._retired = True

    def beat(self) -> Flow[float | None]:
        """Extend once; return the seconds until the next beat, or None where there will be none."""
        try:
            yield from self._send()
        except (LostReservation, NoSuchReservation) as error:
            if error.detail.get("code") == "already_completed":
                # by this very attempt, which has not heard of it: the COMMIT was not acknowledged
                return None
            self.lost = True
            _log.warning("heartbeat.lost", extra=self._names)
            return None
        except Exception as error:  # noqa: BLE001 - whatever it is, the next beat may succeed
            if monotonic() >= self._alive_until:
                _log.exception("heartbeat.given_up", extra=self._names)
                return None
            _log.warning("heartbeat.failed", extra=self._names, exc_info=error)
        return None if self._stopped else self._interval

    def _send(self) -> Flow[None]:
        unit = yield self._source.open
        try:
            yield self._sending.acquire
            try:
                if not self._stopped:
                    length: timedelta = yield partial(unit.once, self._extend)
                    if self._learns:
                        self._lease, self._interval = length.total_seconds(), interval_of(True, length).total_seconds()
                    self._renew()
            finally:
                self._sending.release()
        except BaseException as error:
            yield from undo(unit, error)
            raise
        finally:
            yield unit.close

    def _renew(self) -> None:
        self._alive_until = monotonic() + self._lease

    @abstractmethod
    def _new_lock(self) -> Any:
        """Return what is held while a beat is being sent."""

    @abstractmethod
    def _end(self) -> Any:
        """End the wait for the next beat."""


class ThreadHeartbeat(Heartbeat):
    """A heartbeat in a thread of its own.

    A resolver that has run out of time may start it while the sweeper ends it, and must not then keep the key for ever.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._starting = threading.Lock()

    def start(self) -> None:
        """Begin to beat, unless it does already."""
        with self._starting:
            if not self._stopped or self._retired:
                return
            self._stopped = False
            self._renew()
            self._ended = threading.Event()
            threading.Thread(target=self._run, args=[self._ended], name="pyidem-heartbeat", daemon=True).start()

    def retire(self) -> None:
        """Never start again."""
        with self._starting:
            super().retire()

    def _run(self, ended: threading.Event) -> None:
        delay: float | None = self._interval
        while delay is not None and not ended.wait(delay):
            delay = run(self.beat())

    def _new_lock(self) -> threading.Lock:
        return threading.Lock()

    def _end(self) -> None:
        self._ended.set()


class TaskHeartbeat(Heartbeat):
    """A heartbeat in an asyncio task."""

    async def start(self) -> None:
        """Begin to beat, unless it does already."""
        if self._stopped and not self._retired:
            self._stopped = False
            self._renew()
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        delay: float | None = self._interval
        while delay is not None:
            await asyncio.sleep(delay)
            delay = await run_async(self.beat())

    def _new_lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def _end(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


def lease_of(reservation: Reservation | HttpReservation, lease: timedelta | None) -> timedelta:
    """Return how long the lease is: as asked for, or as the database set it. The client's clock plays no part."""
    if lease is not None:
        return lease
    if isinstance(reservation, HttpReservation):
        return _SHORTEST_LEASE
    first = reservation.attempt == 1 and reservation.lease_until is not None and reservation.created_at is not None
    if not first:
        return _SHORTEST_LEASE
    assert reservation.lease_until is not None
    assert reservation.created_at is not None
    # in UTC, since the difference of two times in one zone leaves out that its clocks may change in between
    return reservation.lease_until.astimezone(UTC) - reservation.created_at.astimezone(UTC)


def interval_of(heartbeat: bool | timedelta, lease: timedelta) -> timedelta:
    """Return the time between two beats: as asked for, or a third of the lease."""
    return lease / _BEATS_PER_LEASE if heartbeat is True or heartbeat is False else heartbeat

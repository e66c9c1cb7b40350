"""The hostile network between the clients and the workers.

It loses requests, loses answers after the work was done, hands one request to several workers at the same moment, and
sends some workers to their death. It writes down every attempt and every answer, also of those it lost: what nobody
heard must not differ either.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPConnection, HTTPException
from random import Random

from pyidem.demo.fate import Fate
from pyidem.demo.operations import Operation

_TIMEOUT = 10
_CHANGING_HEADERS = {"content-length", "idempotency-replayed", "date", "server"}


class ServiceFailed(RuntimeError):
    """A worker answered 500: something went wrong that is no part of the demonstration."""


@dataclass(frozen=True, slots=True)
class Hazards:
    """How likely each misfortune is, for one attempt."""

    request_lost: float = 0.08
    answer_lost: float = 0.15
    duplicated: float = 0.15
    die_in_transaction: float = 0.008
    die_after_provider: float = 0.02
    provider_lost: float = 0.03


class Result(StrEnum):
    """What became of one attempt, as its client sees it. Every attempt has exactly one."""

    COMPLETED = "completed"
    REPLAYED = "replayed"
    IN_PROGRESS = "in_progress"
    REUSED = "reused"
    FAILED = "failed"
    REQUEST_LOST = "request_lost"
    ANSWER_LOST = "answer_lost"
    CUT_OFF = "cut_off"


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer as it came over the network."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    replayed: bool = False

    @property
    def final(self) -> bool:
        """Whether a client need not ask again."""
        return self.status != 409 and self.status < 500

    @property
    def content(self) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
        """What has to be the same every time."""
        return self.status, self.headers, self.body

    @property
    def result(self) -> Result:
        """What a client makes of it."""
        if self.status == 409:
            return Result.IN_PROGRESS
        if self.status == 422:
            return Result.REUSED
        if self.status >= 500:
            return Result.FAILED
        return Result.REPLAYED if self.replayed else Result.COMPLETED


class Record:
    """What the network has seen. Safe to use from several threads.

    Attributes:
        attempts: how many there were of each result.
        duplicates: attempts that were sent beside another one at the same moment.
        answers: every final answer to an operation.
        reuse: every final answer to a request that used an operation's key for something else.
    """

    def __init__(self) -> None:
        self.attempts: Counter[Result] = Counter()
        self.duplicates = 0
        self.answers: defaultdict[Operation, list[Heard]] = defaultdict(list)
        self.reuse: defaultdict[Operation, list[Heard]] = defaultdict(list)
        self._lock = threading.Lock()

    def note(self, operation: Operation, heard: Heard | None, result: Result, *, duplicate: bool) -> None:
        """Write down one attempt."""
        with self._lock:
            self.attempts[result] += 1
            self.duplicates += duplicate
            if heard is not None and heard.final:
                (self.reuse if operation.forged else self.answers)[operation.original].append(heard)


@dataclass(frozen=True, slots=True)
class _Attempt:
    port: int
    request_lost: bool
    answer_lost: bool
    fate: Fate | None
    duplicate: bool


class Network:
    """Carries requests to the workers that listen on these ports, after a fashion."""

    def __init__(self, ports: list[int], hazards: Hazards, parallel: ThreadPoolExecutor) -> None:
        self.record = Record()
        self._ports = ports
        self._hazards = hazards
        self._parallel = parallel

    @classmethod
    @contextmanager
    def to(cls, ports: list[int], hazards: Hazards, *, clients: int) -> Iterator["Network"]:
        """Open a network for so many clients."""
        with ThreadPoolExecutor(clients * 3, thread_name_prefix="network") as parallel:
            yield cls(ports, hazards, parallel)

    def send(self, operation: Operation, rng: Random) -> Heard | None:
        """Send a request and return a final answer, if one came through."""
        attempts = self._draw(operation, rng)
        if len(attempts) == 1:
            return self._carry(operation, attempts[0])
        answers = list(self._parallel.map(lambda attempt: self._carry(operation, attempt), attempts))
        return next((answer for answer in answers if answer is not None), None)

    def _draw(self, operation: Operation, rng: Random) -> list[_Attempt]:
        copies = rng.choice([2, 3]) if rng.random() < self._hazards.duplicated else 1
        ports = rng.sample(self._ports, min(copies, len(self._ports)))
        return [
            _Attempt(
                port,
                request_lost=rng.random() < self._hazards.request_lost,
                answer_lost=rng.random() < self._hazards.answer_lost,
                fate=self._draw_fate(operation, rng),
                duplicate=index > 0,
            )
            for index, port in enumerate(ports)
        ]

    def _draw_fate(self, operation: Operation, rng: Random) -> Fate | None:
        fates = {Fate.DIE_IN_TRANSACTION: self._hazards.die_in_transaction}
        if operation.method == "card":
            fates[Fate.DIE_AFTER_PROVIDER] = self._hazards.die_after_provider
            fates[Fate.LOSE_PROVIDER] = self._hazards.provider_lost
        met = [fate for fate, likelihood in fates.items() if rng.random() < likelihood]
        return met[0] if met else None

    def _carry(self, operation: Operation, attempt: _Attempt) -> Heard | None:
        heard, result = None, Result.REQUEST_LOST
        if not attempt.request_lost:
            try:
                heard = _post(operation, attempt)
            except (OSError, HTTPException):
                result = Result.CUT_OFF
            else:
                result = Result.ANSWER_LOST if attempt.answer_lost else heard.result
        self.record.note(operation, heard, result, duplicate=attempt.duplicate)
        return heard if heard is not None and heard.final and not attempt.answer_lost else None


def _post(operation: Operation, attempt: _Attempt) -> Heard:
    headers = {"Client": operation.scope, "Idempotency-Key": operation.key, "Content-Type": "application/json"}
    if attempt.fate is not None:
        headers["Fate"] = attempt.fate
    connection = HTTPConnection("127.0.0.1", attempt.port, timeout=_TIMEOUT)
    try:
        connection.request("POST", "/refunds", operation.body(), headers)
        response = connection.getresponse()
        body = response.read()
    finally:
        connection.close()
    if response.status == 500:
        raise ServiceFailed(f"a worker answered: {body.decode(errors='replace')}")
    pairs = response.getheaders()
    return Heard(
        response.status,
        tuple((name, value) for name, value in pairs if name.lower() not in _CHANGING_HEADERS),
        body,
        replayed=response.getheader("Idempotency-Replayed") == "true",
    )

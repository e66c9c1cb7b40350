"""What happened on the network between the clients and the service: every attempt, and every answer.

Answers that were lost on the way count as well: what nobody heard must not differ either.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import httpx

from pyidem.demo.operations import Operation
from pyidem.demo.proxy import Passage
from pyidem.demo.wire import Answer, Headers, Request

_CHANGING_HEADERS = frozenset({"connection", "content-length", "date", "idempotency-replayed", "server"})


class Result(StrEnum):
    """What became of one attempt. Every attempt has exactly one."""

    COMPLETED = "completed"
    REPLAYED = "replayed"
    IN_PROGRESS = "in_progress"
    UNKNOWN = "unknown"
    REUSED = "reused"
    FAILED = "failed"
    REQUEST_LOST = "request_lost"
    ANSWER_LOST = "answer_lost"
    CUT_OFF = "cut_off"


_PASSAGES = {
    Passage.REQUEST_LOST: Result.REQUEST_LOST,
    Passage.ANSWER_LOST: Result.ANSWER_LOST,
    Passage.ANSWER_CUT: Result.ANSWER_LOST,
    Passage.BROKEN_OFF: Result.CUT_OFF,
}


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer of the service, without the headers that may differ from one time to the next."""

    status: int
    headers: Headers
    body: bytes
    replayed: bool = False

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Return what was heard of an answer."""
        headers = lower_case(answer.headers)
        kept = tuple((name, value) for name, value in headers if name not in _CHANGING_HEADERS)
        return cls(answer.status, kept, answer.body, replayed=("idempotency-replayed", "true") in headers)

    @classmethod
    def of_response(cls, response: httpx.Response) -> Self:
        """Return the same of what a client has got."""
        headers = tuple((name.decode(), value.decode()) for name, value in response.headers.raw)
        return cls.of(Answer(response.status_code, headers, response.content))

    @property
    def final(self) -> bool:
        """Whether a client need not ask again."""
        return self.status != 409 and self.status < 500

    @property
    def content(self) -> tuple[int, Headers, bytes]:
        """What has to be the same every time."""
        return self.status, self.headers, self.body

    @property
    def result(self) -> Result:
        """What a client makes of it."""
        if self.status == 409:
            return Result.UNKNOWN if _code(self.body) == "idempotency_outcome_unknown" else Result.IN_PROGRESS
        if self.status == 422:
            return Result.REUSED
        if self.status >= 500:
            return Result.FAILED
        return Result.REPLAYED if self.replayed else Result.COMPLETED


class Record:
    """Looks over the proxy's shoulder.

    Attributes:
        attempts: how many there were of each result.
        duplicates: attempts that were sent beside another one at the same moment.
        answers: every final answer to an operation.
        reuse: every final answer to a request that used an operation's key for something else.
        errors: the bodies of answers with status 500, which are no part of the demonstration.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.attempts: Counter[Result] = Counter()
        self.duplicates = 0
        self.answers: defaultdict[Operation, list[Heard]] = defaultdict(list)
        self.reuse: defaultdict[Operation, list[Heard]] = defaultdict(list)
        self.errors: list[bytes] = []
        self._operations = {(operation.authorization, operation.key): operation for operation in operations}

    def observe(self, request: Request, answer: Answer | None, passage: Passage, duplicate: bool) -> None:
        """Write down one attempt."""
        heard = None if answer is None else Heard.of(answer)
        if heard is not None and passage is Passage.DELIVERED:
            self.attempts[heard.result] += 1
        else:
            self.attempts[_PASSAGES[passage]] += 1
        self.duplicates += duplicate
        if heard is not None:
            operation = self._operations[request.header("Authorization"), request.header("Idempotency-Key")]
            self.note(operation, heard, forged=request.body != operation.body)

    def note(self, operation: Operation, heard: Heard, *, forged: bool) -> None:
        """Write down an answer, if it is final."""
        if heard.status == 500:
            self.errors.append(heard.body)
        if heard.final:
            (self.reuse if forged else self.answers)[operation].append(heard)


def lower_case(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return the headers with their names, in which case does not count, in lower case."""
    return tuple((name.lower(), value) for name, value in headers)


def _code(body: bytes) -> object:
    document = json.loads(body)
    return document.get("code") if isinstance(document, dict) else None

"""What the middleware for ASGI and for WSGI have in common: what to protect, how, and what is kept of an answer."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from pyidem._decisions import Decision, OnDecision, tell
from pyidem._errors import IdempotencyError, InProgress, LostReservation, ScopeMissing
from pyidem._heartbeat import require_possible
from pyidem._http import BodyTooLarge
from pyidem._transactions import is_unavailable
from pyidem._types import Response

C = TypeVar("C")

_SAFE_METHODS = {"GET", "HEAD", "OPTIONS", "TRACE"}
_EVENT_STREAM = "text/event-stream"
_ABOUT_CONTENT = {"content-encoding", "content-length", "content-range"}

_log = logging.getLogger("pyidem")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """How requests are protected.

    `policy`, `lease`, `heartbeat` and `wait` are those of `idem.leased`. `fail_open`: where the database cannot be
    reached the request is served all the same, without protection; otherwise it is answered with 503. A body of more
    than `max_request_bytes` is refused with 413. Of an answer no more than `max_response_bytes` are kept in memory; a
    longer one is passed on and recorded without its body, as is one above the policy's `max_body_bytes`.
    """

    policy: str | None = None
    lease: timedelta | None = None
    heartbeat: bool | timedelta = True
    wait: timedelta | None = None
    fail_open: bool = False
    max_request_bytes: int = 10 * 1024 * 1024
    max_response_bytes: int = 1024 * 1024

    @property
    def options(self) -> dict[str, Any]:
        """What `idem.leased` is to be called with."""
        return {"policy": self.policy, "lease": self.lease, "heartbeat": self.heartbeat, "wait": self.wait}


class Counterpart(Protocol):
    """What the middleware needs of Idem or AsyncIdem besides its methods."""

    on_decision: OnDecision | None

    @property
    def shared(self) -> bool:
        """Whether a heartbeat can have a connection of its own."""


Protect = Protection | Callable[[C], Protection | None]


def protection_of(protect: Protect[C], method: str, request: C) -> Protection | None:
    """Return how to protect a request, or None where it is none of the middleware's business."""
    if method.upper() in _SAFE_METHODS:
        return None
    return protect if isinstance(protect, Protection) else protect(request)


def require_heartbeat(idem: Counterpart, protect: Protect[Any]) -> None:
    """Refuse a heartbeat that is not possible, before the first request does."""
    if isinstance(protect, Protection):
        require_possible(protect.heartbeat, protect.lease, shared=idem.shared)


def scope_missing(idem: Counterpart) -> Response:
    """Return the answer where the application did not say whose the request is."""
    _log.error("middleware.scope_missing")
    tell(idem.on_decision, Decision("request", None, "scope_missing"))
    response = ScopeMissing("The application did not say whose request this is, so its key protects nothing.").response
    assert response is not None
    return response


def refusal(idem: Counterpart, scope: str, protection: Protection, error: Exception) -> Response | None:
    """Return the answer where the key could not be reserved, or None where the request is to be served nevertheless.

    Raises the error where it is of another kind.
    """
    if isinstance(error, BodyTooLarge):
        tell(idem.on_decision, Decision("request", scope, "too_large"))
        return _problem(413, "request_too_large", "Request too large", "The body is larger than this resource accepts.")
    if isinstance(error, IdempotencyError) or not is_unavailable(error):
        raise error
    _log.warning("middleware.unavailable", exc_info=error)
    tell(idem.on_decision, Decision("request", scope, "open" if protection.fail_open else "unavailable"))
    return None if protection.fail_open else _unavailable()


def incomplete(idem: Counterpart, scope: str) -> Response:
    """Return the answer to a request whose body ends before the length that it has announced, if anybody hears it."""
    tell(idem.on_decision, Decision("request", scope, "incomplete"))
    return _problem(400, "request_incomplete", "Request incomplete", "The body ended before its announced length.")


def not_stored(idem: Counterpart, scope: str, error: Exception) -> Response:
    """Return the answer where the work was done and its own answer could not be stored."""
    _log.error("middleware.not_stored", exc_info=error)
    tell(idem.on_decision, Decision("request", scope, "not_stored"))
    if isinstance(error, LostReservation):
        lost = InProgress("Another attempt has taken over this request.", retry_after=timedelta(seconds=1)).response
        assert lost is not None
        return lost
    return _unavailable()


class Copy:
    """A bounded copy of an answer on its way to the caller."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._chunks: list[bytes] = []
        self._size = 0
        self._status: int | None = None
        self._headers: list[tuple[str, str]] = []

    @property
    def started(self) -> bool:
        """Whether status and headers are known."""
        return self._status is not None

    @property
    def is_event_stream(self) -> bool:
        """Whether every event has to reach the caller at once; no copy is kept of them."""
        types = [value for name, value in self._headers if name.lower() == "content-type"]
        return bool(types) and types[0].partition(";")[0].strip().lower() == _EVENT_STREAM

    def start(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Take status and headers."""
        self._status, self._headers = status, list(headers)

    def add(self, chunk: bytes) -> None:
        """Take a part of the body."""
        self._size += len(chunk)
        if self._size > self._limit or self.is_event_stream:
            self._chunks.clear()
        else:
            self._chunks.append(bytes(chunk))

    @property
    def arguments(self) -> dict[str, Any]:
        """What `op.complete` is to be called with."""
        if self._size <= self._limit and not self.is_event_stream:
            return {"status": self._status, "body": b"".join(self._chunks), "headers": self._headers}
        headers = [(name, value) for name, value in self._headers if name.lower() not in _ABOUT_CONTENT]
        return {"status": self._status, "headers": [*headers, ("idempotency-body-omitted", "true")]}


def _unavailable() -> Response:
    detail = "Idempotency keys cannot be kept at present. Try again later, with the same key."
    return _problem(503, "idempotency_unavailable", "Temporarily unavailable", detail, [("retry-after", "1")])


def _problem(status: int, code: str, title: str, detail: str, headers: Iterable[tuple[str, str]] = ()) -> Response:
    document = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    return Response.of(status, document, [("content-type", "application/problem+json"), *headers])

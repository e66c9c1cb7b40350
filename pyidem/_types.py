"""What goes into and comes out of the SQL functions, as Python values.

Intervals are `timedelta`, timestamps aware `datetime`, bodies `bytes`. A missing body (None), an empty one (b"") and
any other are three different things, and stay so.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from uuid import UUID

from pyidem._errors import IdempotencyError, NotCompleted, answered_error, outcome_error

if TYPE_CHECKING:
    import django.http  # type: ignore[import-untyped]
    import flask
    import starlette.responses

V = TypeVar("V")

_INT_LIMIT = 2**31
_JSON_TYPE = ("content-type", "application/json")

Headers = Iterable[tuple[str, str]]
"""Header pairs in order, repeats included. A mapping will not do: it could hold no repeats."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """The answer of `idem.reserve`, `idem.run` and `idem.lookup`: the composite type `idem.reservation`.

    Of an attempt that was not `started`, token, downstream_key, recovery_point and state are None.
    """

    outcome: str
    token: UUID | None = None
    attempt: int | None = None
    downstream_key: UUID | None = None
    recovery_point: str | None = None
    state: Any = None
    status: int | None = None
    headers: list[list[str]] | None = None
    body: bytes | None = None
    mismatched: list[str] | None = None
    retry_after: timedelta | None = None
    created_at: datetime | None = None
    lease_until: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Take a row of `RESERVATION_FIELDS`, whatever the driver makes of UUIDs and bytes."""
        return cls(**{name: _READERS.get(name, _as_is)(row[name]) for name in RESERVATION_FIELDS})

    @property
    def started(self) -> bool:
        """Whether the caller owned the key when this was answered."""
        return self.outcome == "started"

    @property
    def error(self) -> IdempotencyError | None:
        """The error that stands for the outcome, or None where there is an answer or work to do."""
        return outcome_error(self)

    @property
    def response(self) -> "Response":
        """The stored answer.

        Raises KeyReused, InProgress, OutcomeUnknown or KeyExpired where the outcome is one of those, and NotCompleted
        where there is no answer yet.
        """
        if self.error is not None:
            raise self.error
        if self.completed_at is None:
            raise NotCompleted(f"there is no answer stored (outcome {self.outcome})")
        return Response.from_reservation(self)


@dataclass(frozen=True, slots=True)
class HttpReservation:
    """The answer of `idem.http_reserve`: the composite type `idem.http_reservation`.

    `status` is None where the work is to be done, else status, headers and body are the complete answer to send. The
    outcome may also be missing, invalid or unprotected; where it is unprotected there is no key and no token.
    """

    outcome: str
    key: str | None = None
    token: UUID | None = None
    attempt: int | None = None
    downstream_key: UUID | None = None
    recovery_point: str | None = None
    state: Any = None
    status: int | None = None
    headers: list[list[str]] | None = None
    body: bytes | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Take a row of `HTTP_RESERVATION_FIELDS`."""
        return cls(**{name: _READERS.get(name, _as_is)(row[name]) for name in HTTP_RESERVATION_FIELDS})

    @property
    def started(self) -> bool:
        """Whether the caller is to do the work."""
        return self.status is None

    @property
    def retry_after(self) -> timedelta | None:
        """How long the answer asks the client to wait."""
        values = [value for name, value in self.headers or () if name.lower() == "retry-after"]
        return timedelta(seconds=int(values[0])) if values else None

    @property
    def mismatched(self) -> list[str]:
        """What the answer says is different from the request that the key belongs to."""
        problem = json.loads(self.body or b"{}") if self.outcome == "mismatch" else {}
        named: list[str] = problem.get("error", problem).get("mismatched", [])
        return named

    @property
    def error(self) -> IdempotencyError | None:
        """The error that stands for the outcome, with the database's answer; None for a replay, or work to do."""
        return None if self.started else answered_error(self)

    @property
    def response(self) -> "Response":
        """The answer to send. Raises NotCompleted where the work is to be done first."""
        if self.started:
            raise NotCompleted(f"there is no answer yet (outcome {self.outcome})")
        return Response.from_reservation(self)


_JSON_FIELDS = ("state", "headers", "detail")


@cache
def columns_of(names: tuple[str, ...]) -> str:
    """Return what to select for fields: JSON as text, since drivers and applications differ in what they make of it."""
    return ", ".join(f"{name}::text as {name}" if name in _JSON_FIELDS else name for name in names)


RESERVATION_FIELDS = tuple(each.name for each in fields(Reservation))
HTTP_RESERVATION_FIELDS = tuple(each.name for each in fields(HttpReservation))


@dataclass(frozen=True, slots=True)
class LapsedReservation:
    """A row of `idem.claim_lapsed`: a key whose outcome is unknown, and the token to end it by."""

    scope: str
    key: str
    token: UUID = field(repr=False)
    attempt: int
    downstream_key: UUID
    recovery_point: str | None
    state: Any = field(repr=False)
    policy: str
    created_at: datetime
    lapsed_at: datetime
    claims: int
    """How often it has been claimed since its attempt stopped, this time included."""
    reason: str | None
    """Why the owner, or the last resolver, gave up; None where a process died."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Take a row of `LAPSED_FIELDS`."""
        return cls(**{name: _READERS.get(name, _as_is)(row[name]) for name in LAPSED_FIELDS})

    @property
    def reservation(self) -> Reservation:
        """What its owner is told of it."""
        shared = ("token", "attempt", "downstream_key", "recovery_point", "state", "created_at")
        return Reservation("started", **{name: getattr(self, name) for name in shared})


LAPSED_FIELDS = tuple(each.name for each in fields(LapsedReservation))


@dataclass(frozen=True, slots=True)
class Event:
    """A row of `idem.history`."""

    at: datetime
    event: str
    attempt: int
    by_role: str | None
    reason: str | None
    detail: Any

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Take a row of `EVENT_FIELDS`."""
        return cls(**{name: _READERS.get(name, _as_is)(row[name]) for name in EVENT_FIELDS})


EVENT_FIELDS = tuple(each.name for each in fields(Event))


@dataclass(frozen=True, slots=True)
class Mark:
    """One row of `idem.once_many`: what became of the message at this place of the batch, counted from 1."""

    ordinal: int
    key: str
    outcome: str
    """first, duplicate or in_progress."""

    @property
    def first(self) -> bool:
        """Whether the caller is to handle the message now, in the transaction of the mark."""
        return self.outcome == "first"


@dataclass(frozen=True, slots=True)
class Handled(Generic[V]):
    """What a consumer has done with a message; acknowledge it either way.

    `ran` is False for a duplicate. `value` is what the handler returned just now; it is not stored, so a duplicate has
    none.
    """

    ran: bool
    value: V | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A completed answer: the one just committed, or the stored one that a retry gets again."""

    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None

    @classmethod
    def of(cls, status: Any = None, body: Any = None, headers: Headers | None = None) -> Self:
        """Check and encode what an application hands to `op.complete`, before anything is sent.

        Raises TypeError or ValueError where that cannot be stored exactly.
        """
        if isinstance(status, bool) or not isinstance(status, int | None):
            raise TypeError(f"status must be an int or None, not {type(status).__name__}")
        if status is not None and not -_INT_LIMIT <= status < _INT_LIMIT:
            raise ValueError("status must fit the database's integer")
        pairs = _check_headers(() if headers is None else headers)
        encoded, is_json = _encode_body(body)
        if is_json and not any(name.lower() == "content-type" for name, _ in pairs):
            pairs = (*pairs, _JSON_TYPE)
        return cls(status, pairs, encoded)

    @classmethod
    def from_reservation(cls, reservation: Reservation | HttpReservation) -> Self:
        """Return the stored answer of a completed reservation."""
        pairs = reservation.headers or ()
        return cls(reservation.status, tuple((name, value) for name, value in pairs), reservation.body)

    @property
    def wire_headers(self) -> list[tuple[bytes, bytes]]:
        """The headers as ASGI wants them: bytes, the names in lower case.

        Content-Length is that of the body as it is here; a status that never has a body has none.
        """
        return [(name.lower().encode(), _wire(value)) for name, value in self._sent_headers]

    @property
    def native_headers(self) -> list[tuple[str, str]]:
        """The same as WSGI and its frameworks want them: str, each character a byte."""
        return [(name, _wire(value).decode("latin-1")) for name, value in self._sent_headers]

    @property
    def _sent_headers(self) -> list[tuple[str, str]]:
        kept = [(name, value) for name, value in self.headers if name.lower() != "content-length"]
        if not _is_bodiless(self._http_status):
            kept.append(("Content-Length", str(len(self.body or b""))))
        return kept

    @property
    def wire_body(self) -> bytes:
        """The body as it goes over HTTP."""
        return b"" if _is_bodiless(self._http_status) else self.body or b""

    def to_starlette(self) -> "starlette.responses.Response":
        """Return the same as a response of Starlette or FastAPI."""
        from starlette.responses import Response as StarletteResponse  # noqa: PLC0415

        response = StarletteResponse(self.wire_body, self._http_status)
        response.raw_headers = self.wire_headers
        return response

    def to_django(self) -> "django.http.HttpResponse":
        """Return the same as a response of Django, which joins headers of one name by commas, but for Set-Cookie."""
        from pyidem.django import response_of  # noqa: PLC0415

        return response_of(self)

    def to_flask(self) -> "flask.Response":
        """Return the same as a response of Flask."""
        from flask import Response as FlaskResponse  # noqa: PLC0415

        response = FlaskResponse(self.wire_body, self._http_status)
        response.headers.clear()
        response.headers.extend(self.native_headers)
        return response

    def to_wsgi(self, start_response: Callable[..., Any]) -> list[bytes]:
        """Answer a WSGI request: `return response.to_wsgi(start_response)`."""
        start_response(f"{self._http_status} {_reason(self._http_status)}", self.native_headers)
        return [self.wire_body]

    async def to_asgi(self, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Answer an ASGI request."""
        await send({"type": "http.response.start", "status": self._http_status, "headers": self.wire_headers})
        await send({"type": "http.response.body", "body": self.wire_body})

    @property
    def _http_status(self) -> int:
        if self.status is None:
            raise ValueError("an HTTP answer needs a status")
        return self.status


def decode_uuid(value: UUID | str) -> UUID:
    """Return what a driver made of a UUID; some leave it as text."""
    return UUID(value) if isinstance(value, str) else value


def _as_is(value: Any) -> Any:
    return value


def _unless_null(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "token": _unless_null(decode_uuid),
    "downstream_key": _unless_null(decode_uuid),
    "state": _unless_null(json.loads),
    "headers": _unless_null(json.loads),
    "detail": _unless_null(json.loads),
    "body": _unless_null(bytes),
}


def encode_json(value: Any) -> str:
    """Encode as compact JSON; NaN, infinities and lone surrogates, which no parser has to accept, are a ValueError."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate cannot be encoded as UTF-8") from None
    return text


def encode_jsonb(value: Any) -> str:
    """Do the same for a jsonb; NUL, which it cannot hold, is a ValueError, too."""
    text = encode_json(value)
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise ValueError("a NUL character cannot be stored in a jsonb")
    return text


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def normalize_json(value: Any) -> Any:
    """Return a value as it comes back from the database; ValueError or TypeError where it cannot be stored."""
    return json.loads(encode_jsonb(value))


def _encode_body(body: Any) -> tuple[bytes | None, bool]:
    """Return the bytes to store, and whether they were made by encoding a value as JSON."""
    match body:
        case None:
            return None, False
        case bytes() | bytearray() | memoryview():
            return bytes(body), False
        case str():
            return _encode_text(body), False
        case _:
            return encode_json(body).encode(), True


def _encode_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate cannot be encoded as UTF-8") from None


def _check_headers(headers: Headers) -> tuple[tuple[str, str], ...]:
    if isinstance(headers, str | bytes | Mapping):
        raise TypeError(f"headers must be (name, value) pairs, not a {type(headers).__name__}")
    return tuple(_check_header(pair) for pair in headers)


def _check_header(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"a header must be a (name, value) pair, not {type(pair).__name__}")
    name, value = pair
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError("the name and the value of a header must be str")
    if not name or any(character in "\r\n\0 :" for character in name):
        raise ValueError(f"{name!r} cannot be the name of a header")
    if any(character in "\r\n\0" for character in value):
        raise ValueError(f"the value of header {name!r} contains a line break or NUL")
    _encode_text(name + value)
    return name, value


def _wire(value: str) -> bytes:
    """Encode what a header holds. What is not Latin-1 HTTP leaves open; UTF-8 is read back as the same bytes."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode()


def _is_bodiless(status: int) -> bool:
    return status < 200 or status in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"

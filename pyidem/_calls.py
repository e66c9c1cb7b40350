"""The SQL functions, each as a builder of one `Call`. Nothing here does any I/O, and no other SQL is sent.

Arguments go by name, with a cast, so that every driver sends the same types whatever its own guesses are. One that was
not given is left out: its default is the database's to decide.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from pyidem._errors import KeyInvalid
from pyidem._types import Headers, Reservation, Response, encode_json

T = TypeVar("T")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One function call: its text with `%(name)s` placeholders, its parameters, and how to read the row it returns."""

    sql: str
    params: Mapping[str, Any] = field(repr=False)
    decode: Callable[[Row], T] = field(repr=False)


def reserve(
    scope: str,
    key: str,
    *,
    fingerprint: bytes | None = None,
    mode: str | None = None,
    lease: timedelta | None = None,
    fields: Mapping[str, str] | None = None,
    state: Any = None,
    token: UUID | None = None,
    policy: str | None = None,
) -> Call[Reservation]:
    """Build the claim on a key. The token is made here, so that the call can be repeated if its answer is lost."""
    return _call(
        "reserve",
        Reservation.from_row,
        _owned(scope, key, token or uuid4()),
        fingerprint=("bytea", fingerprint),
        mode=("text", mode),
        lease=("interval", lease),
        fields=("jsonb", _json(fields)),
        state=("jsonb", _json(state)),
        policy=("text", policy),
    )


def complete(
    scope: str,
    key: str,
    token: UUID,
    *,
    status: int | None = None,
    headers: Headers | None = None,
    body: Any = None,
) -> Call[bool]:
    """Build the call that stores the answer. False: this token has stored exactly this before."""
    return store(scope, key, token, Response.of(status, body, headers))


def store(scope: str, key: str, token: UUID, response: Response) -> Call[bool]:
    """Build the same call from an answer that was checked and encoded before."""
    return _call(
        "complete",
        _value,
        _owned(scope, key, token),
        status=("int", response.status),
        headers=("jsonb", _json(response.headers or None)),
        body=("bytea", response.body),
    )


def release(scope: str, key: str, token: UUID) -> Call[bool]:
    """Build: leased, the work did not happen and the key may run again."""
    return _call("release", _value, _owned(scope, key, token))


def defer(
    scope: str, key: str, token: UUID, *, retry_in: timedelta | None = None, reason: str | None = None
) -> Call[bool]:
    """Build: leased, the owner gives up and the outcome is unknown."""
    return _call("defer", _value, _owned(scope, key, token), retry_in=("interval", retry_in), reason=("text", reason))


def extend(scope: str, key: str, token: UUID, *, lease: timedelta | None = None) -> Call[datetime]:
    """Build: leased, a heartbeat; the answer is when the lease now ends."""
    return _call("extend", _value, _owned(scope, key, token), lease=("interval", lease))


def lookup(scope: str, key: str) -> Call[Reservation]:
    """Build the read-only look at a key."""
    return _call("lookup", Reservation.from_row, _named(scope, key))


def downstream_key(scope: str, key: str, step: str | None = None) -> Call[UUID]:
    """Build the derivation of the key to hand to the next system."""
    return _call("downstream_key", _value, _named(scope, key), step=("text", step))


def version() -> Call[str]:
    """Build the question which version is installed."""
    return _call("version", _value, {})


SINGLE_TRANSACTION: Call[bool] = Call(
    "select coalesce(nullif(current_setting('idem.single_transaction', true), '')::boolean, false) as value",
    {},
    lambda row: bool(row["value"]),
)
"""Whether a test suite runs everything in one transaction; asked only of a connection that is inside one."""

_Arguments = Mapping[str, tuple[str, Any]]


def _call(function: str, decode: Callable[[Row], T], required: _Arguments, **optional: tuple[str, Any]) -> Call[T]:
    given = {**required, **{name: argument for name, argument in optional.items() if argument[1] is not None}}
    listed = ", ".join(f"{name} => %({name})s::{cast}" for name, (cast, _) in given.items())
    return Call(
        f"select * from idem.{function}({listed})",  # noqa: S608 - names and casts are literals of this module
        {name: value for name, (_, value) in given.items()},
        decode,
    )


def _named(scope: str, key: str) -> dict[str, tuple[str, Any]]:
    """Return the two arguments that every call on a key has; null is sent too, and refused by the database."""
    return {"scope": ("text", _sendable("scope", scope)), "key": ("text", _sendable("key", key))}


def _owned(scope: str, key: str, token: UUID) -> dict[str, tuple[str, Any]]:
    return {**_named(scope, key), "token": ("uuid", token)}


def _sendable(argument: str, value: object) -> object:
    """Refuse what no PostgreSQL text can hold, in the way the database refuses other unprintable characters."""
    if isinstance(value, str) and any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value):
        raise KeyInvalid(
            f"the {argument} has characters that are not printable",
            detail={"code": "not_printable", "argument": argument},
        )
    return value


def _value(row: Row) -> Any:
    (value,) = row.values()
    return value


def _json(value: Any) -> str | None:
    return None if value is None else encode_json(value)

"""The SQL functions, each as a builder of one `Call`. Nothing here does any I/O, and no other SQL is sent.

Arguments have a cast, so that every driver sends the same types whatever its own guesses are. On the hot paths all go
by position, with null for what was not given: nothing is prepared, and an argument by name, or one whose default the
server has to look up, costs it a share of each call. Elsewhere the optional ones go by name, if given. Defaults are the
database's to decide, but for the mode: null would have it checked, where a word that is known takes the short way.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from pyidem._errors import KeyInvalid, NotKept
from pyidem._http import HttpCall
from pyidem._types import (
    EVENT_FIELDS,
    HTTP_RESERVATION_FIELDS,
    LAPSED_FIELDS,
    RESERVATION_FIELDS,
    Event,
    Headers,
    HttpReservation,
    LapsedReservation,
    Mark,
    Reservation,
    Response,
    columns_of,
    decode_uuid,
    encode_jsonb,
)

T = TypeVar("T")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One function call: its text with `%(name)s` placeholders, its parameters, and how to read the rows it returns.

    `name` is that of a function of ours. `whole` is the text for a driver that can take a record apart by itself, into
    values for the names of `record`, which costs the server less than columns that have to be named.
    """

    sql: str
    params: Mapping[str, Any] = field(repr=False)
    decode: Callable[[Sequence[Row]], T] = field(repr=False)
    name: str = ""
    whole: str = ""
    record: tuple[str, ...] = ()

    def numbered(self, *, whole: bool = False) -> tuple[str, tuple[Any, ...]]:
        """Return the text with `$1` and so on for placeholders, and the parameters in that order.

        `whole` asks for the text that returns a record as one value, where the answer is one.
        """
        sql = self.whole if whole and self.record else self.sql
        return _numbered(sql, tuple(self.params)), tuple(self.params.values())


_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")


@cache
def _numbered(sql: str, names: tuple[str, ...]) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${names.index(found[1]) + 1}", sql)


def reserve(
    scope: str,
    key: str,
    *,
    fingerprint: bytes | None = None,
    mode: str | None = "atomic",
    lease: timedelta | None = None,
    fields: Mapping[str, str] | None = None,
    state: Any = None,
    token: UUID | None = None,
    policy: str | None = None,
) -> Call[Reservation]:
    """Build the claim on a key. The token is made here, so that the call can be repeated if its answer is lost."""
    arguments = {
        **_named(scope, key),
        "fingerprint": ("bytea", _bytes("fingerprint", fingerprint)),
        "mode": ("text", mode),
        "lease": ("interval", interval("lease", lease)),
        "fields": (_JSONB, _json(fields)),
        "state": (_JSONB, _json(state)),
        "token": ("uuid", token or uuid4()),
        "policy": ("text", policy),
    }
    return _call("reserve", _one(Reservation.from_row), arguments, record=RESERVATION_FIELDS)


def claim(
    scope: str,
    key: str | HttpCall,
    *,
    fingerprint: bytes | None = None,
    mode: str = "atomic",
    lease: timedelta | None = None,
    fields: Mapping[str, str] | None = None,
    state: Any = None,
    policy: str | None = None,
) -> Call[Reservation] | Call[HttpReservation]:
    """Build either claim, with a new token: on a key by its name, or on that of a request."""
    if not isinstance(key, HttpCall):
        return reserve(
            scope,
            key,
            fingerprint=fingerprint,
            mode=mode,
            lease=lease,
            fields=fields,
            state=state,
            policy=policy,
        )
    if fingerprint is not None or fields is not None:
        raise TypeError("the database makes the fingerprint of a request: leave out fingerprint= and fields=")
    return http_reserve(scope, key, mode=mode, lease=lease, state=state, policy=policy)


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
    return _call("complete", _value, {**_owned(scope, key, token), **_answer(response)})


def http_reserve(
    scope: str,
    call: HttpCall,
    *,
    mode: str | None = "atomic",
    lease: timedelta | None = None,
    state: Any = None,
    token: UUID | None = None,
    policy: str | None = None,
) -> Call[HttpReservation]:
    """Build the claim on the key that a request names, if it names one and needs one."""
    arguments = {
        "scope": ("text", _sendable("scope", scope)),
        "key_header": ("text", call.key_header),
        "method": ("text", call.method),
        "path": ("text", call.path),
        "body": ("bytea", call.body),
        "content_type": ("text", call.content_type),
        "mode": ("text", mode),
        "lease": ("interval", interval("lease", lease)),
        "state": (_JSONB, _json(state)),
        "token": ("uuid", token or uuid4()),
        "policy": ("text", policy),
    }
    return _call("http_reserve", _one(HttpReservation.from_row), arguments, record=HTTP_RESERVATION_FIELDS)


def http_complete(
    scope: str,
    key: str | None,
    token: UUID | None,
    status: int,
    *,
    headers: Headers | None = None,
    body: Any = None,
) -> Call[str]:
    """Build the call that stores an answer if the policy keeps it: stored, released, deferred, repeated, rollback."""
    return _http_complete(scope, key, token, Response.of(status, body, headers), _value)


def http_store(scope: str, key: str, token: UUID, response: Response) -> Call[str]:
    """Build the same call from an answer that was checked before. Where it must be rolled back, that is NotKept."""
    return _http_complete(scope, key, token, response, _kept)


def release(scope: str, key: str, token: UUID) -> Call[bool]:
    """Build: leased, the work did not happen and the key may run again."""
    return _call("release", _value, _owned(scope, key, token))


def defer(
    scope: str, key: str, token: UUID, *, retry_in: timedelta | None = None, reason: str | None = None
) -> Call[bool]:
    """Build: leased, the owner gives up and the outcome is unknown."""
    return _call(
        "defer",
        _value,
        _owned(scope, key, token),
        optional={"retry_in": ("interval", interval("retry_in", retry_in)), "reason": ("text", reason)},
    )


def extend(scope: str, key: str, token: UUID, *, lease: timedelta | None = None) -> Call[datetime]:
    """Build: leased, a heartbeat; the answer is when the lease now ends."""
    return _call(
        "extend", _value, _owned(scope, key, token), optional={"lease": ("interval", interval("lease", lease))}
    )


def beat(scope: str, key: str, token: UUID, *, lease: timedelta | None = None) -> Call[timedelta]:
    """Build the same heartbeat; the answer is how long the lease is now, by the database's clock alone."""
    left = "extend - clock_timestamp() as value"
    optional = {"lease": ("interval", interval("lease", lease))}
    return _call("extend", _value, _owned(scope, key, token), optional=optional, columns=left)


def checkpoint(scope: str, key: str, token: UUID, recovery_point: str, *, state: Any = None) -> Call[bool]:
    """Build: leased, a step is done. False: an earlier transaction has committed exactly this."""
    return _call(
        "checkpoint",
        _value,
        {**_owned(scope, key, token), "recovery_point": ("text", _sendable("recovery_point", recovery_point))},
        optional={"state": (_JSONB, _json(state))},
    )


def lookup(scope: str, key: str) -> Call[Reservation]:
    """Build the read-only look at a key."""
    return _call("lookup", _one(Reservation.from_row), _named(scope, key), record=RESERVATION_FIELDS)


def claim_lapsed(
    max_rows: int | None = None,
    *,
    lease: timedelta | None = None,
    policy: str | None = None,
    scope: str | None = None,
    key: str | None = None,
) -> Call[list[LapsedReservation]]:
    """Build the claim of a resolver on keys whose outcome is unknown."""
    optional = {
        "max_rows": ("int", max_rows),
        "lease": ("interval", interval("lease", lease)),
        "policy": ("text", policy),
        "scope": ("text", _sendable("scope", scope)),
        "key": ("text", _sendable("key", key)),
    }
    return _call("claim_lapsed", _lapsed, {}, optional=optional, columns=columns_of(LAPSED_FIELDS))


def resolve(
    scope: str,
    key: str,
    action: str,
    reason: str,
    *,
    attempt: int | None = None,
    force: bool | None = None,
    response: Response | None = None,
) -> Call[bool]:
    """Build an operator's decision on a key whose outcome is unknown. False: it is another attempt's by now."""
    required = {**_named(scope, key), "action": ("text", action), "reason": ("text", reason)}
    optional = {"attempt": ("int", attempt), "force": ("boolean", force), **_answer(response or Response())}
    return _call("resolve", _value, required, optional=optional)


def history(scope: str, key: str) -> Call[list[Event]]:
    """Build the question what happened to a key."""
    return _call("history", _events, _named(scope, key), columns=columns_of(EVENT_FIELDS))


def run(
    scope: str, key: str, handler: str, args: Any, *, fingerprint: bytes | None = None, policy: str | None = None
) -> Call[Reservation]:
    """Build the call that reserves, calls a handler in the database and stores its response."""
    arguments = {
        **_named(scope, key),
        "fingerprint": ("bytea", _bytes("fingerprint", fingerprint)),
        "handler": ("text::regprocedure", handler),
        "args": (_JSONB, _json(args)),
        "policy": ("text", policy),
    }
    return _call("run", _one(Reservation.from_row), arguments, record=RESERVATION_FIELDS)


def once(scope: str, message_id: str, *, policy: str | None = None) -> Call[str]:
    """Build the mark on a message: first, duplicate or in_progress."""
    return _call("once", _value, {**_named(scope, message_id), "policy": ("text", policy)})


def once_many(scope: str, keys: Sequence[str], *, policy: str | None = None) -> Call[list[Mark]]:
    """Build the marks on a batch of messages, in their order."""
    optional = {"policy": ("text", policy)}
    return _call("once_many", _marks, _listed(scope, keys), optional=optional, columns="ordinal, key, outcome")


def once_undo(scope: str, keys: Sequence[str]) -> Call[int]:
    """Build the withdrawal of marks that the present transaction has made; the answer is how many those were."""
    return _call("once_undo", _value, _listed(scope, keys))


def downstream_key(scope: str, key: str, step: str | None = None) -> Call[UUID]:
    """Build the derivation of the key to hand to the next system."""
    return _call("downstream_key", _one(_uuid), _named(scope, key), optional={"step": ("text", step)})


def version() -> Call[str]:
    """Build the question which version is installed."""
    return _call("version", _value, {})


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a connection leads, and as whom."""

    database: str
    role: str


@dataclass(frozen=True, slots=True)
class Readiness(Whereabouts):
    """What a database has for a client: its version, and whether the role may work with keys."""

    version: str
    allowed: bool


_WHEREABOUTS = "current_database() as database, current_user as role"


def readiness() -> Call[Readiness]:
    """Build the question whether the database can serve a client. Of a resolver, claims are asked for, not reserve."""
    may = "has_function_privilege(to_regproc('idem.{}'), 'execute')"
    allowed = f"{may.format('complete')} and ({may.format('reserve')} or {may.format('claim_lapsed')})"
    columns = f"version, {_WHEREABOUTS}, coalesce({allowed}, false) as allowed"
    return _call("version", _one(lambda row: Readiness(**row)), {}, columns=columns)


def whereabouts() -> Call[Whereabouts]:
    """Build the question where a connection leads; it needs no pyidem."""
    return Call(f"select {_WHEREABOUTS}", {}, _one(lambda row: Whereabouts(**row)))


def enable_testing() -> Call[None]:
    """Build: let this database honour the settings for test suites."""
    return _call("enable_testing", _nothing, {})


def setting(name: str, value: str, *, local: bool) -> Call[None]:
    """Build: change a setting of the session or, `local`, of the transaction."""
    return Call(
        "select set_config(%(name)s::text, %(value)s::text, %(local)s::boolean) as value",
        {"name": name, "value": value, "local": local},
        _nothing,
    )


def now() -> Call[datetime]:
    """Build: what the server's own clock shows."""
    return Call("select clock_timestamp() as value", {}, _value)


def _nothing(_: Sequence[Row]) -> None:
    return None


def _one(read: Callable[[Row], T]) -> Callable[[Sequence[Row]], T]:
    """Return a reader of the only row, given that of a row."""
    return lambda rows: read(rows[0])


def _value(rows: Sequence[Row]) -> Any:
    (value,) = rows[0].values()
    return value


SINGLE_TRANSACTION: Call[bool] = Call(
    "select coalesce(nullif(current_setting('idem.single_transaction', true), '')::boolean, false) as value", {}, _value
)
"""Whether a test suite runs everything in one transaction; asked only of a connection that is inside one."""

_Arguments = dict[str, tuple[str, Any]]

_JSONB = "text::jsonb"
"""By way of text, since an application may have taught its driver another encoding of JSON."""


def _call(
    function: str,
    decode: Callable[[Sequence[Row]], T],
    arguments: _Arguments,
    *,
    optional: _Arguments | None = None,
    columns: str = "",
    record: tuple[str, ...] = (),
) -> Call[T]:
    """Build a call: `arguments` in the function's order, and of the optional ones those that are given.

    The function returns one value, a `record`, or rows of `columns`.
    """
    given = {name: argument for name, argument in (optional or {}).items() if argument[1] is not None}
    listed = ", ".join(
        [f"%({name})s::{cast}" for name, (cast, _) in arguments.items()]
        + [f"{name} => %({name})s::{cast}" for name, (cast, _) in given.items()]
    )
    one = f"select idem.{function}({listed})"
    columns = columns or columns_of(record)
    return Call(
        f"select {columns} from idem.{function}({listed})" if columns else one,  # noqa: S608 - literals of this package
        {name: value for name, (_, value) in (arguments | given).items()},
        decode,
        function,
        one if record else "",
        record,
    )


def _http_complete(
    scope: str,
    key: str | None,
    token: UUID | None,
    response: Response,
    decode: Callable[[Sequence[Row]], str],
) -> Call[str]:
    return _call("http_complete", decode, {**_owned(scope, key, token), **_answer(response)})


def _answer(response: Response) -> dict[str, tuple[str, Any]]:
    return {
        "status": ("int", response.status),
        "headers": (_JSONB, _json(response.headers or None)),
        "body": ("bytea", response.body),
    }


def _kept(rows: Sequence[Row]) -> str:
    """Read what became of an answer, before COMMIT where the driver allows that."""
    verdict: str = _value(rows)
    if verdict == "rollback":
        raise NotKept(
            "the answer has a status that the policy does not keep",
            hint="Roll back the transaction, then send the response that this error has.",
        )
    return verdict


def _named(scope: str, key: str | None) -> dict[str, tuple[str, Any]]:
    """Return the two arguments that every call on a key has; null is sent too, and refused by the database."""
    return {"scope": ("text", _sendable("scope", scope)), "key": ("text", _sendable("key", key))}


def _owned(scope: str, key: str | None, token: UUID | None) -> dict[str, tuple[str, Any]]:
    return {**_named(scope, key), "token": ("uuid", token)}


def _listed(scope: str, keys: Sequence[str]) -> dict[str, tuple[str, Any]]:
    if isinstance(keys, str | bytes):
        raise TypeError(f"keys must be a sequence of keys, not one {type(keys).__name__}")
    return {
        "scope": ("text", _sendable("scope", scope)),
        "keys": ("text[]", [_sendable("key", key) for key in keys]),
    }


def interval(argument: str, value: T) -> T:
    """Refuse what is no timedelta: of a number nobody knows the unit, and drivers differ in what they make of a str."""
    if value is not None and not isinstance(value, timedelta):
        raise TypeError(f"{argument} must be a timedelta, not {type(value).__name__}")
    return value


def _bytes(argument: str, value: T) -> T:
    """Refuse a str, which some drivers would have the database take for escaped bytes."""
    if value is not None and not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{argument} must be bytes, not {type(value).__name__}")
    return value


def _sendable(argument: str, value: object) -> object:
    """Refuse what no PostgreSQL text can hold, in the way the database refuses other unprintable characters.

    So is a value of another type, of which some drivers would send a text of their own choice.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise KeyInvalid(
            f"the {argument} must be a str, not {type(value).__name__}",
            detail={"code": "not_a_string", "argument": argument},
        )
    if _UNSENDABLE.search(value):
        raise KeyInvalid(
            f"the {argument} has characters that are not printable",
            detail={"code": "not_printable", "argument": argument},
        )
    return value


def _uuid(row: Row) -> UUID:
    (value,) = row.values()
    return decode_uuid(value)


def _lapsed(rows: Sequence[Row]) -> list[LapsedReservation]:
    return [LapsedReservation.from_row(row) for row in rows]


def _events(rows: Sequence[Row]) -> list[Event]:
    return [Event.from_row(row) for row in rows]


def _marks(rows: Sequence[Row]) -> list[Mark]:
    return [Mark(row["ordinal"], row["key"], row["outcome"]) for row in rows]


def _json(value: Any) -> str | None:
    return None if value is None else encode_jsonb(value)

"""Every error that pyidem raises, as one tree.

    IdempotencyError
    |
    |   answers for the client of an API; each has an HTTP status and a problem document
    |-- KeyMissing              400  no key where the policy requires one
    |-- KeyInvalid      IK001   400  scope or key not acceptable
    |-- KeyReused               422  the same key came with another request
    |-- InProgress              409  another attempt is at work; try again after `retry_after`
    |-- OutcomeUnknown          409  an earlier attempt stopped half-way; nobody knows yet how far it got
    |-- KeyExpired              410  the stored answer is gone, the key must not be used again
    |-- ScopeMissing            500  the application did not say whose key it is
    |
    |   errors of the program or its surroundings
    |-- LostReservation IK002        another attempt owns the key now, or it is completed with another answer
    |-- NoSuchReservation IK003      nothing is reserved under this key
    |-- WrongMode       IK004        the call does not fit the reservation's mode or transaction
    |-- NotCompleted    IK005        an atomic block ended without an answer; everything was rolled back
    |   `-- NotKept                  its answer is not to be kept, and the transaction is yours: roll back, then send it
    |-- NoSuchPolicy    IK006        no policy of this name
    |-- LimitExceeded   IK007        over a limit of the policy
    |
    |   the database cannot serve this client as it is; each says what to run
    `-- NotReady                     it does not have a function as this client calls it
        |-- NotInstalled             pyidem is not installed there
        |-- DatabaseTooOld           its version is before that of the client
        |-- DatabaseTooNew           its version is too far ahead of the client
        `-- AccessMissing            the role may not call what a client calls

An error is recognised by its SQLSTATE, never by its text. What has no SQLSTATE of ours stays what the driver made of
it: 42501 (this role may not do that), 22023 (bad argument), 40001 (run the transaction again).
"""

import json
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from pyidem._types import HttpReservation, Reservation, Response


class IdempotencyError(Exception):
    """The base of all errors of pyidem.

    `sqlstate` is the code that the database gives this error, empty for what it does not call one. `detail` is what it
    says to machines, as a dict; `hint` what to do about it. `status` is the fitting HTTP status, None for what is no
    answer to a client.
    """

    sqlstate: ClassVar[str] = ""
    status: ClassVar[int | None] = None
    code: ClassVar[str | None] = None
    title: ClassVar[str | None] = None

    def __init__(self, message: str, *, detail: dict[str, Any] | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.detail = detail or {}
        self.hint = hint
        self._answer: Response | None = None
        if hint:
            self.add_note(hint)

    @property
    def problem(self) -> dict[str, Any] | None:
        """The answer to an HTTP client as `application/problem+json` (RFC 9457); None where `status` is None."""
        if self.status is None:
            return None
        return {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": str(self),
            "code": self.code,
        }

    @property
    def response(self) -> "Response | None":
        """The complete answer to an HTTP client: the database's own where it gave one, else the problem document.

        None where this is no answer to a client.
        """
        from pyidem._types import Response  # noqa: PLC0415 - which needs the errors itself

        if self._answer is not None or self.problem is None:
            return self._answer
        return Response.of(self.status, self.problem, [("content-type", "application/problem+json"), *self._more()])

    def answered_by(self, response: "Response") -> Self:
        """Take a response as the complete answer."""
        self._answer = response
        return self

    def _more(self) -> list[tuple[str, str]]:
        """Return the headers that the problem document comes with."""
        return []


class KeyMissing(IdempotencyError):
    """The request has no idempotency key, and the policy requires one."""

    status = 400
    code = "idempotency_key_missing"
    title = "Idempotency key missing"


class KeyInvalid(IdempotencyError):
    """The scope or the key is not acceptable: `detail` says which rule it breaks."""

    sqlstate = "IK001"
    status = 400
    code = "idempotency_key_invalid"
    title = "Idempotency key invalid"


class KeyReused(IdempotencyError):
    """The key belongs to another request; `mismatched` names the parts that differ, where both sides sent them."""

    status = 422
    code = "idempotency_key_reused"
    title = "Idempotency key reused"

    def __init__(self, message: str, *, mismatched: list[str] | None = None, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.mismatched = mismatched or []

    @property
    def problem(self) -> dict[str, Any] | None:
        """The problem document, with what differs where that is known."""
        problem = super().problem or {}
        return problem | {"mismatched": self.mismatched} if self.mismatched else problem


class _TryLater(IdempotencyError):
    """The base of the answers that come with a Retry-After."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.retry_after = retry_after

    def _more(self) -> list[tuple[str, str]]:
        if self.retry_after is None:
            return []
        return [("retry-after", str(max(1, ceil(self.retry_after.total_seconds()))))]


class InProgress(_TryLater):
    """Another attempt with this key is at work. Try again after `retry_after`."""

    status = 409
    code = "idempotency_request_in_progress"
    title = "Request in progress"


class OutcomeUnknown(_TryLater):
    """An attempt with this key stopped half-way, and what it did outside is not known yet.

    A resolver or an operator decides; until then the key stays closed.
    """

    status = 409
    code = "idempotency_outcome_unknown"
    title = "Outcome unknown"


class KeyExpired(IdempotencyError):
    """The stored answer is gone; the key is kept a while longer so that nothing runs twice."""

    status = 410
    code = "idempotency_key_expired"
    title = "Idempotency key expired"


class ScopeMissing(IdempotencyError):
    """The application did not say whose key it is. Nothing was run: a key that everybody shares protects nobody."""

    status = 500
    code = "idempotency_scope_missing"
    title = "Idempotency scope missing"


class LostReservation(IdempotencyError):
    """This attempt no longer owns the key, or the key is completed with another answer. Nothing was changed."""

    sqlstate = "IK002"


class NoSuchReservation(IdempotencyError):
    """Nothing is reserved under this scope and key."""

    sqlstate = "IK003"


class WrongMode(IdempotencyError):
    """The call does not fit the reservation's mode, or the transaction it is made in."""

    sqlstate = "IK004"


class NotCompleted(IdempotencyError):
    """An atomic block came to its end without an answer; its transaction was rolled back and the key is free."""

    sqlstate = "IK005"


class NotKept(NotCompleted):
    """The answer has a status that the policy does not keep, so the key stays free, and the work is not to be kept.

    Raised by a block that was told `commit=False`, which cannot roll back itself. Do so, then send `response`.
    """


class NoSuchPolicy(IdempotencyError):
    """There is no policy of this name."""

    sqlstate = "IK006"


class LimitExceeded(IdempotencyError):
    """More than the policy allows in one call."""

    sqlstate = "IK007"


class NotReady(IdempotencyError):
    """The database cannot serve this client as it is. `command`, which the message ends with, is what to run."""

    def __init__(self, message: str, *, command: str, **attributes: Any) -> None:
        super().__init__(f"{message}. Run: {command}", **attributes)
        self.command = command


class NotInstalled(NotReady):
    """There is no pyidem in this database."""


class DatabaseTooOld(NotReady):
    """The database has a version from before that of this client, which calls what is not there yet."""


class DatabaseTooNew(NotReady):
    """The database has a version so far ahead of this client that the calls may mean something else by now."""


class AccessMissing(NotReady):
    """The role of this connection may not call what a client calls."""


BY_SQLSTATE: dict[str, type[IdempotencyError]] = {
    kind.sqlstate: kind
    for kind in (KeyInvalid, LostReservation, NoSuchReservation, WrongMode, NotCompleted, NoSuchPolicy, LimitExceeded)
}


_UNDEFINED_SCHEMA = "3F000"
_UNDEFINED_FUNCTION = "42883"

_WRAPPERS = ("sqlalchemy.dialects.", "django.db.utils")
"""Modules whose errors stand for the driver's own, which is their cause."""


def driver_error(error: BaseException) -> BaseException:
    """Return the driver's own error below what SQLAlchemy or Django has made of it."""
    below: BaseException = getattr(error, "orig", None) or error
    if type(below).__module__.startswith(_WRAPPERS) and below.__cause__ is not None:
        return below.__cause__
    return below


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of a driver's error, or of the one that SQLAlchemy or Django wraps."""
    below = driver_error(error)
    state = getattr(below, "sqlstate", None) or getattr(below, "pgcode", None)
    return state if isinstance(state, str) else None


class ResolverTimeout(TimeoutError):
    """The resolver of a sweeper did not end within the time it had."""


def reason_of(error: BaseException) -> str:
    """Say why an operation failed, for the record: not in the words of others' errors, which may hold anything."""
    if isinstance(error, ResolverTimeout):
        return str(error)
    name = type(error).__name__
    state = sqlstate_of(error)
    if state is not None:
        return f"{name} (SQLSTATE {state})"
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"{name} (HTTP status {status})" if isinstance(status, int) else name


def translate(error: BaseException) -> BaseException:
    """Return pyidem's own error for a driver's, or the very same error where it is none of ours.

    Useful where an application calls the SQL functions itself: `raise translate(error) from error`.
    """
    kind = BY_SQLSTATE.get(sqlstate_of(error) or "")
    if kind is None or isinstance(error, IdempotencyError):
        return error
    message, detail, hint = _diagnosis(driver_error(error))
    return kind(message or str(error), detail=_parse_detail(detail), hint=hint)


def unready(error: BaseException) -> NotReady | None:
    """Return what a driver's error says of the database: a statement of ours names what is not there.

    Only the parser knows a place in the statement. An error of the same kind from within a handler or a trigger has
    none.
    """
    state = sqlstate_of(error)
    if state not in {_UNDEFINED_SCHEMA, _UNDEFINED_FUNCTION} or not _position(driver_error(error)):
        return None
    if state == _UNDEFINED_SCHEMA:
        return NotInstalled("pyidem is not installed in this database", command="pyidem upgrade")
    return NotReady("this database has another version of pyidem than this client", command="pyidem doctor")


def outcome_error(reservation: "Reservation | HttpReservation") -> IdempotencyError | None:
    """Return the error that stands for an outcome of reserve, or None where there is an answer or work to do.

    The texts are those of the database's own answers over HTTP.
    """
    match reservation.outcome:
        case "mismatch":
            return KeyReused(
                "This key belongs to another request. An attempt repeats the request exactly; another operation, or a"
                " corrected request, takes a new key.",
                mismatched=reservation.mismatched,
            )
        case "in_progress":
            return InProgress(
                "Another attempt with this key is at work. Try again later, with the same key.",
                retry_after=reservation.retry_after,
            )
        case "unresolved":
            return OutcomeUnknown(
                "An earlier attempt with this key stopped half-way, and what it did is not known yet. Try again later,"
                " with the same key; a new key could do it twice.",
                retry_after=reservation.retry_after,
            )
        case "expired":
            return KeyExpired(
                "This key was used too long ago, and its answer is gone. A new operation takes a new key."
            )
        case _:
            return None


def answered_error(reservation: "HttpReservation") -> IdempotencyError | None:
    """Return the error that stands for an outcome of http_reserve, with the answer; None for a replay."""
    match reservation.outcome:
        case "missing":
            error: IdempotencyError | None = KeyMissing(
                "This operation needs an Idempotency-Key header: one key for each operation, the same on every attempt."
            )
        case "invalid":
            error = KeyInvalid(
                "The Idempotency-Key header is one string, quoted or bare, that this resource accepts as a key."
            )
        case _:
            error = outcome_error(reservation)
    return None if error is None else error.answered_by(reservation.response)


def _diagnosis(error: BaseException) -> tuple[str | None, str | None, str | None]:
    """Return message, detail and hint as psycopg and psycopg2 have them, or asyncpg."""
    diag = getattr(error, "diag", None)
    if diag is not None:
        return diag.message_primary, diag.message_detail, diag.message_hint
    return getattr(error, "message", None), getattr(error, "detail", None), getattr(error, "hint", None)


def _position(error: BaseException) -> object:
    """Return the place in the statement, as psycopg and psycopg2 have it, or asyncpg."""
    diag = getattr(error, "diag", None)
    return getattr(error, "position", None) if diag is None else diag.statement_position


def _parse_detail(text: str | None) -> dict[str, Any]:
    try:
        detail = json.loads(text or "{}")
    except ValueError:
        return {"detail": text}
    return detail if isinstance(detail, dict) else {"detail": detail}

"""What `as op` binds: the state of one attempt, in the flavour-free part that needs no I/O."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID, uuid4

from pyidem import _calls
from pyidem._adapters import Source, Unit
from pyidem._calls import Call
from pyidem._drivers import Flow
from pyidem._errors import LostReservation, NotCompleted, NotKept, OutcomeUnknown, WrongMode
from pyidem._heartbeat import Heartbeat, interval_of, lease_of
from pyidem._http import HttpCall
from pyidem._types import Headers, HttpReservation, LapsedReservation, Reservation, Response, normalize_json

H = TypeVar("H")


class Operation(Generic[H]):
    """One attempt at an operation.

    Where `started` is true, do the work and call `complete`. Otherwise somebody else did it, or is at it, or the key
    was misused: after the block, `response` is the stored answer, or raises what fits the outcome.

    Of an `HttpCall`, `key` is what its header names, and `response` the complete answer to send, whatever the outcome.
    Where the request has no key and needs none, the outcome is unprotected: the work is done and nothing is stored.
    """

    def __init__(self, scope: str, key: str | HttpCall, token: UUID, state: Any = None) -> None:
        self.scope = scope
        self.key = "" if isinstance(key, HttpCall) else key
        self.token = token
        self._call = key if isinstance(key, HttpCall) else None
        self._judged = self._call is not None
        self._given_state = state
        self._reservation: Reservation | HttpReservation | None = None
        self._answer: Response | None = None
        self._settled = False
        self._verdict: str | None = None

    @property
    def reservation(self) -> Reservation | HttpReservation:
        """All that the database said when the key was reserved."""
        assert self._reservation is not None, "the block has been entered"
        return self._reservation

    @property
    def outcome(self) -> str:
        """started, replay, in_progress, unresolved, mismatch or expired.

        Of a request also missing, invalid, or unprotected: it has no key and needs none, and the work is to be done.
        """
        return self.reservation.outcome

    @property
    def started(self) -> bool:
        """Whether this attempt is to do the work: it owns the key, or needs none."""
        return self.reservation.started

    @property
    def protected(self) -> bool:
        """Whether there is a key at all. A request may do without one where the policy lets it."""
        return self.outcome != "unprotected"

    @property
    def verdict(self) -> str | None:
        """What became of the answer: stored, or of a request also released, deferred, rollback or unprotected.

        None as long as there is none. `rollback` is that the work was undone, and the key is free.
        """
        return self._verdict

    @property
    def attempt(self) -> int | None:
        """1 for the first owner of the key; more says that earlier ones stopped half-way."""
        return self.reservation.attempt

    @property
    def recovery_point(self) -> str | None:
        """How far the operation is: as the last owner left it, or the checkpoint that this attempt has committed."""
        return self.reservation.recovery_point

    @property
    def state(self) -> Any:
        """What the first owner stored with the reservation, or whoever committed the last checkpoint."""
        return self.reservation.state

    @property
    def mismatched(self) -> list[str]:
        """What differs from the request that the key belongs to, where both sent `fields`."""
        return self.reservation.mismatched or []

    @property
    def retry_after(self) -> timedelta | None:
        """How long a client should wait before it tries again."""
        return self.reservation.retry_after

    def downstream_key(self) -> UUID:
        """Return the idempotency key to pass on to the next system: the same for every attempt at this operation."""
        self._require_started("the downstream key belongs to")
        assert self.reservation.downstream_key is not None
        return self.reservation.downstream_key

    def complete(self, status: int | None = None, body: Any = None, headers: Headers | None = None) -> None:
        """Give the answer that this and every later attempt gets."""
        self._require_started("the answer is given by")
        if self._settled:
            raise WrongMode("the answer is stored already: there is nothing left to complete")
        if self._answer is not None:
            raise WrongMode("complete was called twice in one block")
        if status is None and self._judged:
            raise TypeError("the answer to a request needs a status")
        self._answer = Response.of(status, body, headers)

    def raise_for_outcome(self) -> None:
        """Raise what stands for the outcome, such as KeyReused; do nothing where there is work or an answer."""
        error = self.reservation.error
        if error is not None:
            raise error

    @property
    def response(self) -> Response:
        """The answer, once it is committed: the one given here, or the stored one that this attempt repeats.

        Raises what `raise_for_outcome` does where there is none. Of a request every outcome has its answer.
        """
        if not self.started and self._call is not None:
            return self.reservation.response
        self.raise_for_outcome()
        if not self.started:
            return Response.from_reservation(self.reservation)
        if not self._settled or self._answer is None:
            raise NotCompleted("there is no response before the block has ended with one")
        return self._answer

    @property
    def has_answer(self) -> bool:
        """Whether an answer was given that is not stored yet."""
        return self._answer is not None and not self._settled

    def completion(self) -> Call[Any] | None:
        """Build the call that stores the answer, if one was given and there is a key to store it under."""
        if self._answer is None or not self.protected:
            return None
        store = _calls.http_store if self._judged else _calls.store
        return store(self.scope, self.key, self.token, self._answer)

    @property
    def answer(self) -> Response:
        """The answer that was given, whatever becomes of it."""
        assert self._answer is not None
        return self._answer

    def settle(self, verdict: bool | str | None) -> None:
        """Note that the answer is committed, or what else became of it."""
        self._settled = True
        match verdict:
            case str():
                self._verdict = verdict
            case None if self.started and not self.protected:
                self._verdict = "unprotected"
            case bool():
                self._verdict = "stored" if verdict else "repeated"

    def is_not_kept(self, refusal: NotCompleted) -> bool:
        """Tell whether it was the answer of this very request that made COMMIT fail: the policy does not keep it."""
        named = (refusal.detail.get("scope"), refusal.detail.get("key")) == (self.scope, self.key)
        return self._answer is not None and self._call is not None and (named or isinstance(refusal, NotKept))

    def _note(self, reservation: Reservation | HttpReservation) -> None:
        """Take what the database has answered; a request without a key has at least what it came with."""
        if isinstance(reservation, HttpReservation):
            self.key = reservation.key or ""
            if reservation.outcome == "unprotected":
                reservation = replace(reservation, downstream_key=uuid4(), state=normalize_json(self._given_state))
        self._reservation = reservation

    def _require_started(self, what: str) -> None:
        if not self.started:
            raise WrongMode(
                f"this attempt does not own the key (outcome {self.outcome}), and {what} the owner",
                hint="Look at op.started before doing the work.",
            )


class AtomicOperation(Operation[H]):
    """An attempt whose reservation, work and answer are in one transaction."""

    def __init__(self, scope: str, key: str | HttpCall, token: UUID) -> None:
        super().__init__(scope, key, token)
        self._unit: Unit | None = None

    @property
    def connection(self) -> H:
        """What the source hands out, or what was given as `on`: the connection or session to do the work with."""
        return self._open_unit().handle  # type: ignore[no-any-return]

    @property
    def session(self) -> H:
        """The same, under the name that reads better where it is a session."""
        return self.connection

    def enter(self, reservation: Reservation | HttpReservation, unit: Unit) -> None:
        """Begin, with what the database answered."""
        self._note(reservation)
        self._unit = unit

    def leave(self) -> None:
        """Let go of the connection."""
        self._unit = None

    def complete(self, status: int | None = None, body: Any = None, headers: Headers | None = None) -> None:
        """Give the answer that this and every later attempt gets. It is sent with COMMIT when the block ends.

        `body` may be bytes, str (as UTF-8), or anything that json encodes, which adds a content-type header where there
        is none. None is no body, which is not the same as an empty one. What cannot be stored is refused here and now,
        with TypeError or ValueError.
        """
        self._open_unit()
        super().complete(status, body, headers)

    def completion(self) -> Call[Any] | None:
        """Build the call that stores the answer; an owner must have given one."""
        if self.started and self._answer is None:
            raise NotCompleted(
                "the block ended without op.complete(...); it was rolled back and the key is free",
                hint="Call op.complete with the answer, or raise an exception to roll back.",
            )
        return super().completion()

    def _open_unit(self) -> Unit:
        if self._unit is None:
            raise WrongMode("the block has ended, and its connection with it")
        return self._unit


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """A step that is done."""

    recovery_point: str
    state: Any


class LeasedOperation(Operation[H]):
    """An attempt that is reserved by itself, works outside, and writes its answer in another transaction."""

    _heartbeat_type: ClassVar[type[Heartbeat]]

    def __init__(
        self,
        scope: str,
        key: str | HttpCall,
        token: UUID,
        source: Source,
        *,
        state: Any = None,
        lease: timedelta | None = None,
        heartbeat: bool | timedelta = False,
        http: bool = False,
    ) -> None:
        super().__init__(scope, key, token, state)
        self._judged = self._judged or http
        self.source = source
        self._lease = lease
        self._heartbeat_wanted = heartbeat
        self._heartbeat: Heartbeat | None = None
        self._given_up: str | None = None
        self.failure: str | None = None
        """Why the block was given up: an exception, or an end without an answer. As the database is told."""
        self._in_transaction = False
        self._checkpoint: _Checkpoint | None = None
        self.lapsed: LapsedReservation | None = None
        """What is known of the lapse, where this is a claim on a key that an earlier owner has left."""

    @property
    def lost(self) -> bool:
        """Whether the heartbeat has found that another attempt owns the key now."""
        return self._heartbeat is not None and self._heartbeat.lost

    @property
    def finished(self) -> bool:
        """Whether nothing is left to tell the database: completed, released or deferred."""
        return self._settled or self._given_up is not None

    @property
    def ending(self) -> str | None:
        """How this attempt ended: completed, released or deferred; None while it has not."""
        if self._settled:
            return self.verdict if self.verdict in ("released", "deferred") else "completed"
        return self._given_up

    @property
    def response(self) -> Response:
        """The answer, once it is committed: the one given here, or the stored one that this attempt repeats.

        Raises what `raise_for_outcome` does where there is none, and OutcomeUnknown where this very attempt gave up.
        """
        if self._given_up == "released":
            raise NotCompleted("the reservation was released: the work was not done")
        if self._given_up is not None:
            raise OutcomeUnknown("this attempt gave up before it had an answer", retry_after=self.retry_after)
        return super().response

    @property
    def names(self) -> dict[str, str]:
        """What a log record says about it."""
        return {"idem_scope": self.scope, "idem_key": self.key}

    def complete(self, status: int | None = None, body: Any = None, headers: Headers | None = None) -> None:
        """Give the answer that this and every later attempt gets.

        It is sent when the surrounding `op.transaction()` ends, together with the business write; outside of one, when
        the block ends. For `status`, `body` and `headers` see `AtomicOperation.complete`.
        """
        self.require_owner()
        super().complete(status, body, headers)

    def checkpoint(self, recovery_point: str, state: Any = None) -> None:
        """Say that a step is done: the next attempt finds `recovery_point` and `state`, and goes on from there.

        Belongs into `op.transaction()`: it is sent when that ends, and commits with what was written there, or not at
        all. It renews the lease. The operation goes on: a later transaction may reach the next point or complete. One
        that completes as well stores the answer alone. None keeps the stored state.

        Where an earlier transaction has committed this very checkpoint, as after a lost acknowledgement, the work
        repeated here is rolled back, which counts as success; so the name and the state must be the same whenever the
        step is run again. With another state it is LostReservation.
        """
        self.require_owner()
        if not self._in_transaction:
            raise WrongMode(
                "a checkpoint belongs into op.transaction(): it commits with what is written there",
                hint="with op.transaction() as connection: ...; op.checkpoint(...)",
            )
        if self._checkpoint is not None:
            raise WrongMode("checkpoint was called twice in one transaction: only the whole of it can be repeated")
        self._checkpoint = _Checkpoint(recovery_point, normalize_json(state))

    def enter(self, reservation: Reservation | HttpReservation) -> None:
        """Begin, with what the database answered."""
        self._note(reservation)
        if self.started and self.protected and self._heartbeat_wanted is not False:
            lease = lease_of(reservation, self._lease)
            self._heartbeat = self._heartbeat_type(
                self.source,
                _calls.beat(self.scope, self.key, self.token, lease=self._lease),
                lease=lease,
                interval=interval_of(self._heartbeat_wanted, lease),
                names=self.names,
                learns=self._call is not None and self._lease is None and self._heartbeat_wanted is True,
            )

    def enter_claim(self, lapsed: LapsedReservation) -> None:
        """Begin, with what a claim has handed over."""
        self.lapsed = lapsed
        self.enter(lapsed.reservation)

    def start_heartbeat(self) -> Flow[None]:
        """Let the heartbeat beat, where one was asked for."""
        if self._heartbeat is not None and not self.lost:
            yield self._heartbeat.start

    def stop_heartbeat(self) -> Flow[None]:
        """Return when no beat is being sent and none will be before the next start."""
        if self._heartbeat is not None:
            yield from self._heartbeat.stop()

    def end_heartbeat(self) -> Flow[None]:
        """Return when no beat is being sent and none ever will be, whoever still tries to start it."""
        if self._heartbeat is not None:
            self._heartbeat.retire()
            yield from self._heartbeat.stop()

    def require_owner(self) -> None:
        """Raise unless this attempt owns the key, as far as is known here."""
        self._require_started("this is for")
        if self.lost:
            raise LostReservation(
                "another attempt has taken the reservation over",
                hint="Stop, and reserve again to learn the outcome.",
            )
        if self._given_up is not None:
            raise WrongMode(f"this attempt has {self._given_up} the reservation")

    def deferral(self, reason: str) -> Call[bool]:
        """Build the call that says that the outcome is unknown."""
        return _calls.defer(self.scope, self.key, self.token, reason=reason)

    def give_up(self, how: str) -> None:
        """Note that this attempt has ended the reservation without an answer."""
        self._given_up = how

    def arrival(self) -> Call[bool] | None:
        """Build the call that stores the checkpoint, if one was given."""
        if self._checkpoint is None or not self.protected:
            return None
        point, state = self._checkpoint.recovery_point, self._checkpoint.state
        return _calls.checkpoint(self.scope, self.key, self.token, point, state=state)

    def settle_transaction(self, verdict: bool | str | None) -> None:
        """Note that the answer, or else the checkpoint, is committed."""
        if self._answer is not None:
            self.settle(verdict)
        elif self._checkpoint is not None:
            point, state = self._checkpoint.recovery_point, self._checkpoint.state
            kept = self.state if state is None else state
            self._reservation = replace(self.reservation, recovery_point=point, state=kept)

    @contextmanager
    def in_transaction(self) -> Iterator[None]:
        """Let a checkpoint be given, one transaction at a time; take back an answer whose transaction fails."""
        if self._in_transaction:
            raise WrongMode(
                "this operation has a transaction open: its answer can be in one only",
                hint="For other writes use a connection of your own.",
            )
        before = self._answer
        self._in_transaction = True
        try:
            yield
        except BaseException:
            self._answer = before
            raise
        finally:
            self._in_transaction = False
            self._checkpoint = None

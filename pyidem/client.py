"""`Idem`: the synchronous client.

    idem = Idem(ConnectionPool(dsn))

    with idem.atomic(client_id, key) as op:
        if op.started:
            order = insert_order(op.connection)
            op.complete(201, {"id": order.id})
    return op.response

The database decides everything; this only sends the calls, in as few round trips as the protocol allows, and keeps
transactions and connections in order.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from uuid import UUID

from pyidem import _calls, _flows, _messages, _readiness, _transactions
from pyidem._adapters import LENT, SOURCES, LentSource, Source, adapt
from pyidem._calls import Call
from pyidem._decisions import OnDecision, observed
from pyidem._drivers import Block, run
from pyidem._heartbeat import ThreadHeartbeat
from pyidem._http import HttpCall
from pyidem._operations import AtomicOperation, LeasedOperation
from pyidem._types import (
    Event,
    Handled,
    Headers,
    HttpReservation,
    LapsedReservation,
    Mark,
    Reservation,
    Response,
)

if TYPE_CHECKING:
    import psycopg
    import sqlalchemy
    from psycopg_pool import ConnectionPool
    from sqlalchemy.orm import Session, sessionmaker

    S = TypeVar("S", bound=Session)

C = TypeVar("C")
H = TypeVar("H")
J = TypeVar("J")
M = TypeVar("M")
T = TypeVar("T")
V = TypeVar("V")


class AtomicOp(AtomicOperation[H]):
    """What `with idem.atomic(...) as op` binds."""

    def downstream_key_for(self, step: str) -> UUID:
        """Return the idempotency key for one of several downstream calls; asks the database."""
        make = partial(_transactions.joined_call, self._open_unit())
        return run(_flows.downstream_key(self, step, make))


class LeasedOp(LeasedOperation[H]):
    """What `with idem.leased(...) as op` binds."""

    _heartbeat_type = ThreadHeartbeat

    def transaction(self) -> AbstractContextManager[H]:
        """Open the transaction in which the business write and `complete` commit together.

        It is one of its own, in READ COMMITTED, on a connection or session that `as` binds. Where the database says
        that this attempt has committed the same before, the repeated work is rolled back, which counts as success.
        """
        return Block(_flows.leased_transaction(self))

    def extend(self, lease: timedelta | None = None) -> datetime:
        """Renew the lease, by its own length unless told otherwise; return when it ends now."""
        return run(_flows.extend(self, _calls.extend(self.scope, self.key, self.token, lease=lease)))

    def defer(self, retry_in: timedelta | None = None, reason: str | None = None) -> None:
        """Give up: the outcome is unknown, and a resolver may look at it after `retry_in`."""
        call = _calls.defer(self.scope, self.key, self.token, retry_in=retry_in, reason=reason)
        run(_flows.give_up(self, call, "deferred"))

    def release(self) -> None:
        """Say that the work did not happen: the key may run again at once."""
        run(_flows.give_up(self, _calls.release(self.scope, self.key, self.token), "released"))

    def downstream_key_for(self, step: str) -> UUID:
        """Return the idempotency key for one of several downstream calls; asks the database."""
        make = partial(_transactions.single_call, self.source)
        return run(_flows.downstream_key(self, step, make))


class Idem(Generic[H]):
    """Makes retries safe. One object per process, as thread-safe as its source.

    The source is a psycopg `Connection`, a psycopg_pool `ConnectionPool`, a SQLAlchemy `Engine` or `sessionmaker` on
    psycopg, or a function that returns a DB-API connection: psycopg2's or the like, made anew and closed after use, or
    Django's. `op.connection` (or `op.session`) is then what that source hands out.

    A single connection serves one thing at a time, and has no second one for a heartbeat.

    `on_decision` is called with a `Decision` whenever the database has decided something, for logs and metrics. It runs
    where the call was made and should return at once; what it raises is logged and ignored.

    What goes wrong in the background is logged to `pyidem` under a fixed event name, with `idem_scope` and `idem_key`
    as extra attributes, never a body or a token: `heartbeat.failed`, `heartbeat.lost`, `heartbeat.given_up`,
    `leased.unfinished`, `leased.defer_failed`, `decision.hook_failed`,
    and `block.exit_failed` where a cancelled task could not wait for it.
    """

    @overload
    def __init__(
        self: "Idem[psycopg.Connection[Any]]",
        source: "psycopg.Connection[Any] | ConnectionPool[Any]",
        *,
        on_decision: OnDecision | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: "Idem[sqlalchemy.Connection]", source: "sqlalchemy.Engine", *, on_decision: OnDecision | None = None
    ) -> None: ...
    @overload
    def __init__(self: "Idem[S]", source: "sessionmaker[S]", *, on_decision: OnDecision | None = None) -> None: ...
    @overload
    def __init__(self: "Idem[C]", source: Callable[[], C], *, on_decision: OnDecision | None = None) -> None: ...
    def __init__(self, source: Any, *, on_decision: OnDecision | None = None) -> None:
        self.on_decision = on_decision
        self._source: Source = observed(adapt(source, SOURCES, "Idem"), on_decision)

    @property
    def shared(self) -> bool:
        """Whether another connection can be had while one is in use, as a heartbeat needs it."""
        return self._source.shared

    @property
    def source(self) -> Source:
        """What opens transactions: for the parts of pyidem that work on top of this."""
        return self._source

    @overload
    def atomic(
        self,
        scope: str,
        key: str | HttpCall,
        *,
        fingerprint: bytes | None = None,
        fields: Mapping[str, str] | None = None,
        policy: str | None = None,
        wait: timedelta | None = None,
    ) -> AbstractContextManager[AtomicOp[H]]: ...
    @overload
    def atomic(
        self,
        scope: str,
        key: str | HttpCall,
        *,
        fingerprint: bytes | None = None,
        fields: Mapping[str, str] | None = None,
        policy: str | None = None,
        on: J,
        commit: bool,
    ) -> AbstractContextManager[AtomicOp[J]]: ...
    def atomic(
        self,
        scope: str,
        key: str | HttpCall,
        *,
        fingerprint: bytes | None = None,
        fields: Mapping[str, str] | None = None,
        policy: str | None = None,
        wait: timedelta | None = None,
        on: Any = None,
        commit: bool | None = None,
    ) -> AbstractContextManager[AtomicOp[Any]]:
        """Reserve the key, do the work and store the answer in one transaction: all commit, or nothing happened.

        For work that is a write to this database. The block owns its transaction: it commits at the end, and rolls back
        if an exception leaves it or if no answer was given (NotCompleted). Entering never raises for an expected
        outcome: look at `op.started`.

        `fingerprint` is a digest of the request; the same key with another one is a mismatch, and `fields`, hashes of
        the request's parts by JSON pointer, let `op.mismatched` name what differs.

        An `HttpCall` in place of the key is a whole request: the database reads the key from its header and makes the
        fingerprint, and `op.response` is the complete answer of any outcome. `op.complete` needs a status. One that the
        policy does not keep (`op.verdict` is then "rollback") undoes the work and frees the key, and is sent all the
        same. A request that has no key and needs none is worked on without one.

        `wait` is how long to wait for another attempt that is at work, looking again from time to time, without a
        connection meanwhile; then the outcome is in_progress after all.

        `on` joins the transaction of a psycopg, Django or other DB-API connection, or of a SQLAlchemy connection or
        session, and then `commit` says who ends it: True, the block, as its own; False, the caller, who must roll back
        if an exception leaves the block.

        Raises KeyInvalid, NoSuchPolicy, LimitExceeded, WrongMode.
        """
        reserve = _calls.claim(scope, key, fingerprint=fingerprint, fields=fields, policy=policy)
        op: AtomicOp[Any] = AtomicOp(scope, key, reserve.params["token"])
        patience = _flows.patience(wait, time.sleep)
        if on is None:
            _flows.refuse_commit(commit)
            return Block(_flows.atomic(op, self._source, reserve, patience))
        _flows.refuse_wait(wait)
        return Block(_flows.joined_atomic(op, self._lent(on).join(), reserve, commit=_flows.require_commit(commit)))

    @overload
    def leased(
        self,
        scope: str,
        key: str | HttpCall,
        *,
        fingerprint: bytes | None = None,
        fields: Mapping[str, str] | None = None,
        state: Any = None,
        lease: timedelta | None = None,
        policy: str | None = None,
        heartbeat: bool | timedelta = False,
        wait: timedelta | None = None,
        on: None = None,
    ) -> AbstractContextManager[LeasedOp[H]]: ...
    @overload
    def leased(
        self,
        scope: str,
        key: str | HttpCall,
        *,
        fingerprint: bytes | None = None,
        fields: Mapping[str, str] | None = None,
        state: Any = None,
        lease: timedelta | None = None,
        policy: str | None = None,
        heartbeat: bool | timedelta = False,
        wait: timedelta | None = None,
        on: J,
    ) -> AbstractContextManager[LeasedOp[J]]: ...
    def leased(
        self,
        scope: str,
        key: str | HttpCall,
        *,
        fingerprint: bytes | None = None,
        fields: Mapping[str, str] | None = None,
        state: Any = None,
        lease: timedelta | None = None,
        policy: str | None = None,
        heartbeat: bool | timedelta = False,
        wait: timedelta | None = None,
        on: Any = None,
    ) -> AbstractContextManager[LeasedOp[Any]]:
        """Reserve the key at once, act outside this database, then store the answer with the business write.

        The reservation is committed before the block begins, and no connection is held while it runs. Pass
        `op.downstream_key()` to the other system, so that a repeated call is recognised there; then write what came of
        it within `op.transaction()`, with `op.complete`. If an exception leaves the block, or it ends without an
        answer, the outcome is unknown: the reservation is deferred, and the policy says what happens then.

        `key` may be an `HttpCall`, and `wait` a time to wait for another attempt, both as with `atomic`. An answer with
        a status that says that the work was not begun releases the key, one that leaves it open defers; `op.verdict`
        tells.

        `lease` is how long this attempt counts as alive without a word from it; `heartbeat` renews it in the
        background, at a third of the lease, or as often as a timedelta says. `state` is kept with the reservation for
        whoever has to take it over. `on` uses a connection or session of the caller's, which must not be in a
        transaction.

        Raises KeyInvalid, NoSuchPolicy, LimitExceeded, WrongMode.
        """
        reserve = _calls.claim(
            scope,
            key,
            fingerprint=fingerprint,
            mode="leased",
            lease=lease,
            fields=fields,
            state=state,
            policy=policy,
        )
        source = _flows.require_shared(self._source if on is None else self._lent(on), heartbeat, lease)
        op: LeasedOp[Any] = LeasedOp(
            scope, key, reserve.params["token"], source, state=state, lease=lease, heartbeat=heartbeat
        )
        return Block(_flows.leased(op, reserve, _flows.patience(wait, time.sleep)))

    @overload
    def claim(
        self,
        scope: str,
        key: str,
        *,
        lease: timedelta | None = None,
        heartbeat: bool | timedelta = False,
        http: bool = False,
        on: None = None,
    ) -> AbstractContextManager[LeasedOp[H] | None]: ...
    @overload
    def claim(
        self,
        scope: str,
        key: str,
        *,
        lease: timedelta | None = None,
        heartbeat: bool | timedelta = False,
        http: bool = False,
        on: J,
    ) -> AbstractContextManager[LeasedOp[J] | None]: ...
    def claim(
        self,
        scope: str,
        key: str,
        *,
        lease: timedelta | None = None,
        heartbeat: bool | timedelta = False,
        http: bool = False,
        on: Any = None,
    ) -> AbstractContextManager[LeasedOp[Any] | None]:
        """Settle a key whose outcome is unknown, as when the other system reports by itself what came of it.

        Binds what `leased` binds to its owner, or None where nothing is to be settled: the owner or a sweeper is at
        work, it is settled, it is to be left alone for a while, or there is no such key. The block ends as that of
        `leased` does; `http` says that the policy judges the answer by its status, as it does that of an `HttpCall`.
        """
        source = _flows.require_shared(self._source if on is None else self._lent(on), heartbeat, lease)
        claim = _calls.claim_lapsed(1, lease=lease, scope=scope, key=key)
        make_op: Callable[..., LeasedOp[Any]] = partial(
            LeasedOp, source=source, lease=lease, heartbeat=heartbeat, http=http
        )
        return Block(_flows.claimed(source, claim, make_op))

    def run(
        self,
        scope: str,
        key: str,
        handler: str,
        args: Any,
        *,
        fingerprint: bytes | None = None,
        policy: str | None = None,
        on: Any = None,
    ) -> Reservation:
        """Call `idem.run`: reserve, run a handler in the database and store its response, in one round trip.

        `handler` names a function as in 'shop.pay(jsonb)', which takes `args` as jsonb and returns idem.response. Look
        at `outcome`: "started" is that it ran now; `response` is the answer either way, or raises what fits. An error
        of the handler rolls everything back and leaves the key free.
        """
        call = _calls.run(scope, key, handler, args, fingerprint=fingerprint, policy=policy)
        if on is None:
            return run(_transactions.repeatable_call(self._source, call))
        return self._call(call, on)

    def once(self, scope: str, message_id: str, *, policy: str | None = None, on: Any) -> bool:
        """Mark a message as handled, in the transaction of `on`: True, handle it and commit; False, it is a duplicate.

        The scope is the consumer, and each consumer has marks of its own. Mark and effect commit together, or neither
        does; acknowledge the message after that. A duplicate is acknowledged at once.

        Raises InProgress where another transaction is at it or its outcome is unknown: do not acknowledge, the message
        must come again. KeyInvalid where the id is no usable one, WrongMode on a connection in autocommit mode outside
        a transaction, where the mark would commit before the work.
        """
        unit = self._lent(on).join()
        return run(_messages.marked(unit, _calls.once(scope, message_id, policy=policy)))

    def once_many(self, scope: str, keys: Sequence[str], *, policy: str | None = None, on: Any) -> list[Mark]:
        """Mark a batch of messages, in the transaction of `on`: one Mark for each key, in their order.

        Handle those that are `first`, skip the duplicates, and do not acknowledge those in progress. A key that comes
        again in the batch is a duplicate there. Raises LimitExceeded for more keys than the policy's max_batch.
        """
        unit = self._lent(on).join()
        return run(_messages.joined(unit, _calls.once_many(scope, keys, policy=policy)))

    def once_undo(self, scope: str, keys: Sequence[str], *, on: Any) -> int:
        """Take back marks that this very transaction of `on` has made, as for the one message of a batch that failed.

        Returns how many it had made. Undo the message's work as well: contain it in a savepoint.
        """
        return run(_messages.joined(self._lent(on).join(), _calls.once_undo(scope, keys)))

    def consumer(
        self, scope: str, *, key: Callable[[Any], str], policy: str | None = None
    ) -> Callable[[Callable[[H, M], V]], Callable[[M], Handled[V]]]:
        """Decorate a handler(connection, message), which then takes the message alone and handles it once.

        What it becomes opens a transaction of the source, marks the message, runs the handler there and commits. It
        returns Handled(ran=True, value=what the handler returned), or Handled(ran=False) for a duplicate: acknowledge
        either. Values are not stored, so a duplicate has none. An exception of the handler rolls back mark and work
        together; after a serialization failure (40001) both run again, up to five times in all. Do not acknowledge
        when an exception leaves it, InProgress among them.

        The scope is the consumer. `key` takes the message's id, or better the id of the business event, from the
        message: a copy that was published again has another message id. It must be a str, else KeyInvalid.
        """

        def decorate(handler: Callable[[H, M], V]) -> Callable[[M], Handled[V]]:
            _messages.require_flavour(handler, asynchronous=False)

            @wraps(handler)
            def handle(message: M) -> Handled[V]:
                mark = _calls.once(scope, key(message), policy=policy)
                return _messages.handled(self._source, mark, lambda connection: handler(connection, message))

            return handle

        return decorate

    def reserve(
        self,
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
        on: Any = None,
    ) -> Reservation:
        """Call `idem.reserve`. Mode "atomic", the default, needs `on`: the transaction that will also complete."""
        call = _calls.reserve(
            scope,
            key,
            fingerprint=fingerprint,
            mode=mode,
            lease=lease,
            fields=fields,
            state=state,
            token=token,
            policy=policy,
        )
        return self._call(call, on)

    def complete(
        self,
        scope: str,
        key: str,
        token: UUID,
        *,
        status: int | None = None,
        headers: Headers | None = None,
        body: Any = None,
        on: Any = None,
    ) -> bool:
        """Call `idem.complete`. False: this token has stored exactly this before; roll back the repeated work."""
        return self._call(_calls.complete(scope, key, token, status=status, headers=headers, body=body), on)

    def http_reserve(
        self,
        scope: str,
        call: HttpCall,
        *,
        mode: str | None = "atomic",
        lease: timedelta | None = None,
        state: Any = None,
        token: UUID | None = None,
        policy: str | None = None,
        on: Any = None,
    ) -> HttpReservation:
        """Call `idem.http_reserve`. Mode "atomic", the default, needs `on`: the transaction that will also complete."""
        reserve = _calls.http_reserve(scope, call, mode=mode, lease=lease, state=state, token=token, policy=policy)
        return self._call(reserve, on)

    def http_complete(
        self,
        scope: str,
        key: str | None,
        token: UUID | None,
        status: int,
        *,
        headers: Headers | None = None,
        body: Any = None,
        on: Any = None,
    ) -> str:
        """Call `idem.http_complete`: stored, released, deferred, repeated, rollback or unprotected.

        Roll back after repeated, where the work was done before, and after rollback, where it is not to be kept.
        """
        return self._call(_calls.http_complete(scope, key, token, status, headers=headers, body=body), on)

    def release(self, scope: str, key: str, token: UUID, *, on: Any = None) -> bool:
        """Call `idem.release`: leased, the work did not happen; the key may run again."""
        return self._call(_calls.release(scope, key, token), on)

    def defer(
        self,
        scope: str,
        key: str,
        token: UUID,
        *,
        retry_in: timedelta | None = None,
        reason: str | None = None,
        on: Any = None,
    ) -> bool:
        """Call `idem.defer`: leased, give up; the outcome is unknown."""
        return self._call(_calls.defer(scope, key, token, retry_in=retry_in, reason=reason), on)

    def extend(self, scope: str, key: str, token: UUID, *, lease: timedelta | None = None, on: Any = None) -> datetime:
        """Call `idem.extend`: leased, renew the lease. Returns when it ends now, by the database's clock."""
        return self._call(_calls.extend(scope, key, token, lease=lease), on)

    def claim_lapsed(
        self,
        max_rows: int | None = None,
        *,
        lease: timedelta | None = None,
        policy: str | None = None,
        scope: str | None = None,
        key: str | None = None,
        on: Any = None,
    ) -> list[LapsedReservation]:
        """Call `idem.claim_lapsed`: take keys whose outcome is unknown, to find it out. `Sweeper` does it for you."""
        return self._call(_calls.claim_lapsed(max_rows, lease=lease, policy=policy, scope=scope, key=key), on)

    def resolve(
        self,
        scope: str,
        key: str,
        action: str,
        reason: str,
        *,
        attempt: int | None = None,
        force: bool = False,
        status: int | None = None,
        headers: Headers | None = None,
        body: Any = None,
        on: Any = None,
    ) -> bool:
        """Call `idem.resolve`: an operator's decision on a key whose outcome is unknown, on record with the reason.

        `action` is "complete" (with this answer), "release" (it did not happen) or "retry" (the next attempt goes on
        from where the last one stopped). False: `attempt` was given, and it is another one by now.
        """
        call = _calls.resolve(
            scope, key, action, reason, attempt=attempt, force=force, response=Response.of(status, body, headers)
        )
        return self._call(call, on)

    def history(self, scope: str, key: str, *, on: Any = None) -> list[Event]:
        """Call `idem.history`: what happened to a key, in order."""
        return self._call(_calls.history(scope, key), on)

    def lookup(self, scope: str, key: str, *, on: Any = None) -> Reservation:
        """Call `idem.lookup`: what is committed of a key, without touching it. The outcome may also be "absent"."""
        return self._call(_calls.lookup(scope, key), on)

    def downstream_key(self, scope: str, key: str, step: str = "", *, on: Any = None) -> UUID:
        """Call `idem.downstream_key`: the key to pass on to the next system, the same whoever asks."""
        return self._call(_calls.downstream_key(scope, key, step), on)

    def check(self) -> str:
        """Make sure that this database can serve this client, and return its version: for the start of a program.

        Raises NotInstalled, DatabaseTooOld, DatabaseTooNew or AccessMissing, whose message ends with what to run.
        """
        return run(_readiness.checked(self._source))

    def version(self, *, on: Any = None) -> str:
        """Call `idem.version`: what is installed in the database."""
        return self._call(_calls.version(), on)

    def _lent(self, on: Any) -> LentSource:
        """Return the source that a connection or session of the application's is."""
        lent: LentSource = observed(adapt(on, LENT, "on="), self.on_decision)
        return lent

    def _call(self, call: Call[T], on: Any) -> T:
        """Make a call in the transaction of `on`, or in a short one of its own."""
        if on is None:
            return run(_transactions.single_call(self._source, call))
        return run(_transactions.joined_call(self._lent(on).join(), call))

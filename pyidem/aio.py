"""`AsyncIdem`: the asynchronous client, method for method the same as `Idem`.

    idem = AsyncIdem(async_sessionmaker(engine))

    async with idem.atomic(client_id, key) as op:
        if op.started:
            order = await insert_order(op.session)
            op.complete(201, {"id": order.id})
    return op.response

The database decides everything; this only sends the calls, in as few round trips as the protocol allows, and keeps
transactions and connections in order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload
from uuid import UUID

from pyidem import _calls, _flows, _messages, _readiness, _transactions
from pyidem._adapters import ASYNC_LENT, ASYNC_SOURCES, LentSource, Source, adapt
from pyidem._calls import Call
from pyidem._decisions import OnDecision, observed
from pyidem._drivers import AsyncBlock, run_async
from pyidem._heartbeat import TaskHeartbeat
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
    from psycopg_pool import AsyncConnectionPool
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker

    S = TypeVar("S", bound=AsyncSession)

H = TypeVar("H")
J = TypeVar("J")
M = TypeVar("M")
T = TypeVar("T")
V = TypeVar("V")


class AsyncAtomicOp(AtomicOperation[H]):
    """What `async with idem.atomic(...) as op` binds."""

    async def downstream_key_for(self, step: str) -> UUID:
        """Return the idempotency key for one of several downstream calls; asks the database."""
        make = partial(_transactions.joined_call, self._open_unit())
        return await run_async(_flows.downstream_key(self, step, make))


class AsyncLeasedOp(LeasedOperation[H]):
    """What `async with idem.leased(...) as op` binds."""

    _heartbeat_type = TaskHeartbeat

    def transaction(self) -> AbstractAsyncContextManager[H]:
        """Open the transaction in which business write and completion commit together: see `LeasedOp.transaction`."""
        return AsyncBlock(_flows.leased_transaction(self))

    async def extend(self, lease: timedelta | None = None) -> datetime:
        """Renew the lease, by its own length unless told otherwise; return when it ends now."""
        return await run_async(_flows.extend(self, _calls.extend(self.scope, self.key, self.token, lease=lease)))

    async def defer(self, retry_in: timedelta | None = None, reason: str | None = None) -> None:
        """Give up: the outcome is unknown, and a resolver may look at it after `retry_in`."""
        call = _calls.defer(self.scope, self.key, self.token, retry_in=retry_in, reason=reason)
        await run_async(_flows.give_up(self, call, "deferred"))

    async def release(self) -> None:
        """Say that the work did not happen: the key may run again at once."""
        await run_async(_flows.give_up(self, _calls.release(self.scope, self.key, self.token), "released"))

    async def downstream_key_for(self, step: str) -> UUID:
        """Return the idempotency key for one of several downstream calls; asks the database."""
        make = partial(_transactions.single_call, self.source)
        return await run_async(_flows.downstream_key(self, step, make))


class AsyncIdem(Generic[H]):
    """Makes retries safe, in asyncio. One object per process.

    The source is a psycopg `AsyncConnection`, a psycopg_pool `AsyncConnectionPool`, or a SQLAlchemy `AsyncEngine` or
    `async_sessionmaker` on psycopg or asyncpg. `op.connection` (or `op.session`) is then what that source hands out.

    The end of a block is safe from cancellation: once it has begun, the answer is stored or everything is rolled back
    before CancelledError goes on its way, and no connection goes back to its pool in the middle of anything.

    A single connection serves one thing at a time, and has no second one for a heartbeat.
    """

    @overload
    def __init__(
        self: "AsyncIdem[psycopg.AsyncConnection[Any]]",
        source: "psycopg.AsyncConnection[Any] | AsyncConnectionPool[Any]",
        *,
        on_decision: OnDecision | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: "AsyncIdem[AsyncConnection]", source: "AsyncEngine", *, on_decision: OnDecision | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: "AsyncIdem[S]", source: "async_sessionmaker[S]", *, on_decision: OnDecision | None = None
    ) -> None: ...
    def __init__(self, source: Any, *, on_decision: OnDecision | None = None) -> None:
        self.on_decision = on_decision
        self._source: Source = observed(adapt(source, ASYNC_SOURCES, "AsyncIdem"), on_decision)

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
    ) -> AbstractAsyncContextManager[AsyncAtomicOp[H]]: ...
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
    ) -> AbstractAsyncContextManager[AsyncAtomicOp[J]]: ...
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
    ) -> AbstractAsyncContextManager[AsyncAtomicOp[Any]]:
        """Reserve the key, do the work and store the answer in one transaction: see `Idem.atomic`."""
        reserve = _calls.claim(scope, key, fingerprint=fingerprint, fields=fields, policy=policy)
        op: AsyncAtomicOp[Any] = AsyncAtomicOp(scope, key, reserve.params["token"])
        patience = _flows.patience(wait, asyncio.sleep)
        if on is None:
            _flows.refuse_commit(commit)
            return AsyncBlock(_flows.atomic(op, self._source, reserve, patience))
        _flows.refuse_wait(wait)
        return AsyncBlock(
            _flows.joined_atomic(op, self._lent(on).join(), reserve, commit=_flows.require_commit(commit))
        )

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
    ) -> AbstractAsyncContextManager[AsyncLeasedOp[H]]: ...
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
    ) -> AbstractAsyncContextManager[AsyncLeasedOp[J]]: ...
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
    ) -> AbstractAsyncContextManager[AsyncLeasedOp[Any]]:
        """Reserve the key at once, act outside, then store the answer with the business write: see `Idem.leased`."""
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
        op: AsyncLeasedOp[Any] = AsyncLeasedOp(
            scope, key, reserve.params["token"], source, state=state, lease=lease, heartbeat=heartbeat
        )
        return AsyncBlock(_flows.leased(op, reserve, _flows.patience(wait, asyncio.sleep)))

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
    ) -> AbstractAsyncContextManager[AsyncLeasedOp[H] | None]: ...
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
    ) -> AbstractAsyncContextManager[AsyncLeasedOp[J] | None]: ...
    def claim(
        self,
        scope: str,
        key: str,
        *,
        lease: timedelta | None = None,
        heartbeat: bool | timedelta = False,
        http: bool = False,
        on: Any = None,
    ) -> AbstractAsyncContextManager[AsyncLeasedOp[Any] | None]:
        """Settle a key whose outcome is unknown: see `Idem.claim`."""
        source = _flows.require_shared(self._source if on is None else self._lent(on), heartbeat, lease)
        claim = _calls.claim_lapsed(1, lease=lease, scope=scope, key=key)
        make_op: Callable[..., AsyncLeasedOp[Any]] = partial(
            AsyncLeasedOp, source=source, lease=lease, heartbeat=heartbeat, http=http
        )
        return AsyncBlock(_flows.claimed(source, claim, make_op))

    async def run(
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
        """Call `idem.run`: reserve, run a handler in the database and store its response: see `Idem.run`."""
        call = _calls.run(scope, key, handler, args, fingerprint=fingerprint, policy=policy)
        if on is None:
            return await run_async(_transactions.repeatable_call(self._source, call))
        return await self._call(call, on)

    async def once(self, scope: str, message_id: str, *, policy: str | None = None, on: Any) -> bool:
        """Mark a message as handled, in the transaction of `on`: see `Idem.once`."""
        unit = self._lent(on).join()
        return await run_async(_messages.marked(unit, _calls.once(scope, message_id, policy=policy)))

    async def once_many(self, scope: str, keys: Sequence[str], *, policy: str | None = None, on: Any) -> list[Mark]:
        """Mark a batch of messages, in the transaction of `on`: see `Idem.once_many`."""
        unit = self._lent(on).join()
        return await run_async(_messages.joined(unit, _calls.once_many(scope, keys, policy=policy)))

    async def once_undo(self, scope: str, keys: Sequence[str], *, on: Any) -> int:
        """Take back marks that this very transaction of `on` has made: see `Idem.once_undo`."""
        return await run_async(_messages.joined(self._lent(on).join(), _calls.once_undo(scope, keys)))

    def consumer(
        self, scope: str, *, key: Callable[[Any], str], policy: str | None = None
    ) -> Callable[[Callable[[H, M], Awaitable[V]]], Callable[[M], Awaitable[Handled[V]]]]:
        """Decorate an `async def handler(connection, message)`: see `Idem.consumer`."""

        def decorate(handler: Callable[[H, M], Awaitable[V]]) -> Callable[[M], Awaitable[Handled[V]]]:
            _messages.require_flavour(handler, asynchronous=True)

            @wraps(handler)
            async def handle(message: M) -> Handled[V]:
                mark = _calls.once(scope, key(message), policy=policy)
                return await _messages.handled_async(
                    self._source, mark, lambda connection: handler(connection, message)
                )

            return handle

        return decorate

    async def reserve(
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
        return await self._call(call, on)

    async def complete(
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
        return await self._call(_calls.complete(scope, key, token, status=status, headers=headers, body=body), on)

    async def http_reserve(
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
        return await self._call(reserve, on)

    async def http_complete(
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
        return await self._call(_calls.http_complete(scope, key, token, status, headers=headers, body=body), on)

    async def release(self, scope: str, key: str, token: UUID, *, on: Any = None) -> bool:
        """Call `idem.release`: leased, the work did not happen; the key may run again."""
        return await self._call(_calls.release(scope, key, token), on)

    async def defer(
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
        return await self._call(_calls.defer(scope, key, token, retry_in=retry_in, reason=reason), on)

    async def extend(
        self, scope: str, key: str, token: UUID, *, lease: timedelta | None = None, on: Any = None
    ) -> datetime:
        """Call `idem.extend`: leased, renew the lease. Returns when it ends now, by the database's clock."""
        return await self._call(_calls.extend(scope, key, token, lease=lease), on)

    async def claim_lapsed(
        self,
        max_rows: int | None = None,
        *,
        lease: timedelta | None = None,
        policy: str | None = None,
        scope: str | None = None,
        key: str | None = None,
        on: Any = None,
    ) -> list[LapsedReservation]:
        """Call `idem.claim_lapsed`: take keys whose outcome is unknown, to find it out."""
        return await self._call(_calls.claim_lapsed(max_rows, lease=lease, policy=policy, scope=scope, key=key), on)

    async def resolve(
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
        """Call `idem.resolve`: an operator's decision: see `Idem.resolve`."""
        call = _calls.resolve(
            scope, key, action, reason, attempt=attempt, force=force, response=Response.of(status, body, headers)
        )
        return await self._call(call, on)

    async def history(self, scope: str, key: str, *, on: Any = None) -> list[Event]:
        """Call `idem.history`: what happened to a key, in order."""
        return await self._call(_calls.history(scope, key), on)

    async def lookup(self, scope: str, key: str, *, on: Any = None) -> Reservation:
        """Call `idem.lookup`: what is committed of a key, without touching it. The outcome may also be "absent"."""
        return await self._call(_calls.lookup(scope, key), on)

    async def downstream_key(self, scope: str, key: str, step: str = "", *, on: Any = None) -> UUID:
        """Call `idem.downstream_key`: the key to pass on to the next system, the same whoever asks."""
        return await self._call(_calls.downstream_key(scope, key, step), on)

    async def check(self) -> str:
        """Make sure that this database can serve this client: see `Idem.check`."""
        return await run_async(_readiness.checked(self._source))

    async def version(self, *, on: Any = None) -> str:
        """Call `idem.version`: what is installed in the database."""
        return await self._call(_calls.version(), on)

    def _lent(self, on: Any) -> LentSource:
        """Return the source that a connection or session of the application's is."""
        lent: LentSource = observed(adapt(on, ASYNC_LENT, "on="), self.on_decision)
        return lent

    async def _call(self, call: Call[T], on: Any) -> T:
        """Make a call in the transaction of `on`, or in a short one of its own."""
        if on is None:
            return await run_async(_transactions.single_call(self._source, call))
        return await run_async(_transactions.joined_call(self._lent(on).join(), call))

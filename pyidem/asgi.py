"""Idempotency keys around a whole ASGI application.

    app = IdempotencyMiddleware(app, AsyncIdem(pool), scope=client_of)

Leased only: the handler works in sessions of its own, so its work and the answer here cannot commit together. If the
worker is killed between the two, the outcome is unknown, and the policy says what happens then. Work that is a write to
the same database belongs into `idem.atomic` in the handler instead.
"""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from typing import Any

from pyidem._http import Disconnected, HttpCall
from pyidem._middleware import (
    Copy,
    Protect,
    Protection,
    not_stored,
    protection_of,
    refusal,
    require_heartbeat,
    scope_missing,
)
from pyidem.aio import AsyncIdem, AsyncLeasedOp

__all__ = ["IdempotencyMiddleware", "Protection"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_UNSEEN = {"http.response.pathsend", "http.response.zerocopysend", "http.response.trailers"}
"""Extensions by which an answer, or a part of it, would pass the copy."""

_alone: set[asyncio.Task[None]] = set()

_log = logging.getLogger("pyidem")


class IdempotencyMiddleware:
    """Answers a repeated request with the first one's answer, and lets the application see it once.

    `scope` says whose request it is, from the ASGI scope: the client, the tenant. It may be async. Where it returns
    None or an empty string the request is refused with 500, since a key that everybody shares protects nobody.

    `protect` is a `Protection`, or a function that returns one for the ASGI scope of a request, or None for what is to
    pass untouched. GET, HEAD, OPTIONS and TRACE always pass.

    No connection is held while the application runs. Once it has begun, a cancellation does not reach it: the caller
    may hang up, the work and its record come to their end. The last part of an answer is sent when it is stored.
    """

    def __init__(
        self,
        app: Application,
        idem: AsyncIdem[Any],
        *,
        scope: Callable[[Scope], str | Awaitable[str | None] | None],
        protect: Protect[Scope] = Protection(),  # noqa: B008 - it is frozen
    ) -> None:
        self._app = app
        self._idem = idem
        self._scope_of = scope
        self._protect = protect
        require_heartbeat(idem, protect)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        protection = None
        if scope["type"] == "http":
            protection = protection_of(self._protect, scope["method"], scope)
        if protection is None:
            await self._app(scope, receive, send)
        else:
            await self._serve(protection, scope, receive, send)

    async def _serve(self, protection: Protection, scope: Scope, receive: Receive, send: Send) -> None:
        owner = self._scope_of(scope)
        if isawaitable(owner):
            owner = await owner
        if not owner:
            await scope_missing(self._idem).to_asgi(send)
            return
        assert isinstance(owner, str)
        answer = None
        try:
            call, receive = await _read(scope, receive, protection.max_request_bytes)
            block = self._idem.leased(owner, call, **protection.options)
            op = await block.__aenter__()
        except Disconnected:  # nobody is there to answer, and nothing was begun
            return
        except Exception as error:  # noqa: BLE001 - it is raised again where it is not known
            answer = refusal(self._idem, owner, protection, error)
        else:
            if op.started and op.protected:
                exchange = _Exchange(self._idem, op, block, Copy(protection.max_response_bytes), send)
                await _to_the_end(exchange.run(self._app, _seen(scope), receive))
                return
            if op.started:
                await op.release()  # there is no key, and the block has nothing to wait for
            else:
                answer = op.response
            await block.__aexit__(None, None, None)
        if answer is None:
            await self._app(scope, receive, send)
        else:
            await answer.to_asgi(send)


class _Exchange:
    """One protected request: what the application sends, until it is stored."""

    def __init__(
        self,
        idem: AsyncIdem[Any],
        op: AsyncLeasedOp[Any],
        block: AbstractAsyncContextManager[Any],
        copy: Copy,
        send: Send,
    ) -> None:
        self._idem = idem
        self._op = op
        self._block = block
        self._copy = copy
        self._send = send
        self._held: list[Message] = []
        self._forwarded = False
        self._ended = False
        self._replaced = False

    async def run(self, app: Application, scope: Scope, receive: Receive) -> None:
        """Run the application. Where it ends without a whole answer the outcome is unknown."""
        try:
            await app(scope, receive, self.send)
        except BaseException as error:
            await self._end(error)
            raise
        await self._end(None)

    async def send(self, message: Message) -> None:
        """Pass on what the application sends, one part of the body behind."""
        match message["type"]:
            case "http.response.start":
                pairs = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in message.get("headers", ())
                ]
                self._copy.start(message["status"], pairs)
                self._held.append(message)
                if self._copy.is_event_stream:
                    await self._forward()
            case "http.response.body":
                await self._send_body(message)
            case _:
                await self._send(message)

    async def _send_body(self, message: Message) -> None:
        self._copy.add(message.get("body", b""))
        if not message.get("more_body", False):
            await self._store()
        elif self._copy.is_event_stream:
            await self._send(message)
            return
        elif message.get("body"):
            await self._forward(keep_start=True)
        self._held.append(message)
        if self._ended:
            await self._forward()

    async def _store(self) -> None:
        """Store the answer; what of it is still held may go out then."""
        if self._ended:
            return
        try:
            self._op.complete(**self._copy.arguments)
            await self._end(None)
        except Exception as error:
            await self._end(error)
            if self._forwarded:
                raise
            self._replaced = True
            await not_stored(self._idem, self._op.scope, error).to_asgi(self._send)

    async def _forward(self, *, keep_start: bool = False) -> None:
        """Send what is held. The start waits for a first part of the body, since another answer may have to go out."""
        if keep_start and len(self._held) < 2 and not self._forwarded:
            return
        held, self._held = self._held, []
        for message in held if not self._replaced else ():
            self._forwarded = True
            await self._send(message)

    async def _end(self, error: BaseException | None) -> None:
        """Leave the block, once."""
        if not self._ended:
            self._ended = True
            if error is None:
                await self._block.__aexit__(None, None, None)
            else:
                await self._block.__aexit__(type(error), error, error.__traceback__)


async def _read(scope: Scope, receive: Receive, limit: int) -> tuple[HttpCall, Receive]:
    """Read the request where it has a key, and return what gives the application its body."""
    if not any(name.lower() == b"idempotency-key" for name, _ in scope["headers"]):
        return HttpCall.of_scope(scope, b""), receive
    call = await HttpCall.from_asgi(scope, receive, limit)
    unread = [call.body]

    async def receive_again() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return call, receive_again


def _seen(scope: Scope) -> Scope:
    """Return the scope without the extensions by which an answer would go out unseen."""
    extensions = {name: value for name, value in (scope.get("extensions") or {}).items() if name not in _UNSEEN}
    return {**scope, "extensions": extensions}


async def _to_the_end(work: Any) -> None:
    """Await work that a cancellation does not reach; if one comes, the work goes on alone.

    What it sets in context variables is seen by the caller, as if it had been awaited.
    """
    context = contextvars.copy_context()
    task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, context=context)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            _alone.add(task)
            task.add_done_callback(_alone_done)
        raise
    finally:
        for variable in context:
            if task.done() and variable.get(_MISSING) is not context[variable]:
                variable.set(context[variable])


_MISSING = object()


def _alone_done(task: asyncio.Task[None]) -> None:
    _alone.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("middleware.failed_alone", exc_info=error)

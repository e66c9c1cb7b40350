"""Idempotency keys around a whole WSGI application, such as Flask's or Django's.

    app.wsgi_app = IdempotencyMiddleware(app.wsgi_app, Idem(pool), scope=client_of)

Leased only: the handler works in sessions of its own, so its work and the answer here cannot commit together. If the
worker is killed between the two, the outcome is unknown, and the policy says what happens then. Work that is a write to
the same database belongs into `idem.atomic` in the handler instead.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import AbstractContextManager
from typing import Any

from pyidem._http import Disconnected, HttpCall
from pyidem._middleware import (
    Copy,
    Protect,
    Protection,
    incomplete,
    not_stored,
    protection_of,
    refusal,
    require_heartbeat,
    scope_missing,
)
from pyidem.client import Idem, LeasedOp

__all__ = ["IdempotencyMiddleware", "Protection"]

Environ = MutableMapping[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


class IdempotencyMiddleware:
    """Answers a repeated request with the first one's answer, and lets the application see it once.

    `scope` says whose request it is, from the WSGI environ: the client, the tenant. Where it returns None or an empty
    string the request is refused with 500, since a key that everybody shares protects nobody.

    `protect` is a `Protection`, or a function that returns one for the environ of a request, or None for what is to
    pass untouched. GET, HEAD, OPTIONS and TRACE always pass.

    No connection is held while the application runs. The last part of an answer is sent when it is stored.
    """

    def __init__(
        self,
        app: Application,
        idem: Idem[Any],
        *,
        scope: Callable[[Environ], str | None],
        protect: Protect[Environ] = Protection(),  # noqa: B008 - it is frozen
    ) -> None:
        self._app = app
        self._idem = idem
        self._scope_of = scope
        self._protect = protect
        require_heartbeat(idem, protect)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        protection = protection_of(self._protect, environ["REQUEST_METHOD"], environ)
        if protection is None:
            return self._app(environ, start_response)
        owner = self._scope_of(environ)
        if not owner:
            return scope_missing(self._idem).to_wsgi(start_response)
        answer = None
        try:
            block = self._idem.leased(owner, _read(environ, protection.max_request_bytes), **protection.options)
            op = block.__enter__()
        except Disconnected:  # what came is not the request, and its end is missing
            answer = incomplete(self._idem, owner)
        except Exception as error:  # noqa: BLE001 - it is raised again where it is not known
            answer = refusal(self._idem, owner, protection, error)
        else:
            if op.started and op.protected:
                exchange = _Exchange(self._idem, op, block, Copy(protection.max_response_bytes), start_response)
                return exchange.run(self._app, environ)
            if op.started:
                op.release()  # there is no key, and the block has nothing to wait for
            else:
                answer = op.response
            block.__exit__(None, None, None)
        return self._app(environ, start_response) if answer is None else answer.to_wsgi(start_response)


class _Exchange:
    """One protected request, and the body of its answer: one part behind the application's, until that is stored."""

    def __init__(
        self,
        idem: Idem[Any],
        op: LeasedOp[Any],
        block: AbstractContextManager[Any],
        copy: Copy,
        start_response: StartResponse,
    ) -> None:
        self._idem = idem
        self._op = op
        self._block = block
        self._copy = copy
        self._start_response = start_response
        self._start: tuple[Any, ...] = ()
        self._written: list[bytes] = []
        self._forwarded = False
        self._ended = False
        self._parts: Iterable[bytes] = ()
        self._body: Iterator[bytes] = iter(())

    def run(self, app: Application, environ: Environ) -> Iterable[bytes]:
        """Run the application. Where it ends without a whole answer the outcome is unknown."""
        try:
            self._parts = app(environ, self.start_response)
        except BaseException as error:
            self._end(error)
            raise
        self._body = self._passed_on()
        return self

    def start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        """Take status and headers; they go out with the first part of the body."""
        if exc_info and self._forwarded:
            raise exc_info[1].with_traceback(exc_info[2])
        self._start = (status, headers)
        self._copy.start(int(status.split(" ", 1)[0]), headers)
        return self._written.append

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._body)
        except StopIteration:
            raise
        except BaseException as error:
            self._end(error)
            raise

    def close(self) -> None:
        """Close the application's answer, as the server has to; before its end that is an unknown outcome."""
        try:
            self._end(Disconnected())
        finally:
            if hasattr(self._parts, "close"):
                self._parts.close()

    def _passed_on(self) -> Iterator[bytes]:
        held: bytes | None = None
        for part in self._all_parts():
            self._copy.add(part)
            if self._copy.is_event_stream:
                self._forward()
                yield part
            else:
                if held is not None:
                    self._forward()
                    yield held
                held = part
        answer = self._store()
        if answer is not None:
            yield from answer
            return
        self._forward()
        if held is not None:
            yield held

    def _all_parts(self) -> Iterator[bytes]:
        """Return what was written the old way, and what was returned."""
        for part in self._parts:
            yield from self._take_written()
            yield part
        yield from self._take_written()

    def _take_written(self) -> list[bytes]:
        written = self._written[:]
        self._written.clear()
        return written

    def _store(self) -> Iterable[bytes] | None:
        """Store the answer. Where that fails, another one goes out, unless a part of this one has."""
        try:
            self._op.complete(**self._copy.arguments)
            self._end(None)
        except Exception as error:
            self._end(error)
            if self._forwarded:
                raise
            return not_stored(self._idem, self._op.scope, error).to_wsgi(self._start_response)
        return None

    def _forward(self) -> None:
        if not self._forwarded:
            self._forwarded = True
            self._start_response(*self._start)

    def _end(self, error: BaseException | None) -> None:
        """Leave the block, once."""
        if not self._ended:
            self._ended = True
            if error is None:
                self._block.__exit__(None, None, None)
            else:
                self._block.__exit__(type(error), error, error.__traceback__)


def _read(environ: Environ, limit: int) -> HttpCall:
    """Read the request where it has a key; the application can read it again."""
    if "HTTP_IDEMPOTENCY_KEY" in environ:
        return HttpCall.from_wsgi(environ, limit)
    return HttpCall.of_environ(environ, b"")

"""An httpx transport that sends a request until it is answered, every time under the same idempotency key.

    with httpx.Client(transport=IdempotentTransport()) as client:
        response = client.post("https://api.example/refunds", json={"cents": 100})
        print(response.extensions["idempotency"])

A request that changes something gets a key of its own, made at random, unless the caller has given it one. Others pass
through untouched. The extra `httpx` brings the library.
"""

import logging
import random as _random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

import anyio
import httpx

from pyidem._retries import Call, Idempotency, Retries

__all__ = ["AsyncIdempotentTransport", "Idempotency", "IdempotentTransport", "Retries", "UnrepeatableBody"]

HEADER: Final = "Idempotency-Key"
_METHODS: Final = frozenset({"POST", "PATCH"})
_BUFFER: Final = 10 * 2**20
_TIMEOUTS: Final = ("connect", "read", "write", "pool")
# After these nobody knows whether the request has arrived: what the key is for.
_UNANSWERED: Final = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError)

_log = logging.getLogger("pyidem")


class UnrepeatableBody(httpx.StreamError):
    """The request's body can be read only once and is too large to be kept for a second attempt. Nothing was sent."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the body can be read only once and has more than {limit} bytes: pass bytes, or raise max_buffered_bytes"
        )


class _Settings:
    """What both transports have in common."""

    def __init__(
        self,
        retries: Retries,
        *,
        methods: Iterable[str],
        make_key: Callable[[httpx.Request], str],
        max_buffered_bytes: int,
        clock: Callable[[], float],
        now: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self._retries = retries
        self._methods = frozenset(method.upper() for method in methods)
        self._make_key = make_key
        self._limit = max_buffered_bytes
        self._clock = clock
        self._now = now
        self._random = random

    def _begin(self, request: httpx.Request) -> Call | None:
        """Return a call for a request that carries a key from now on; None for one that needs none."""
        if HEADER not in request.headers:
            if request.method.upper() not in self._methods:
                return None
            # In the request itself: a redirect, or an answer to a challenge, is the same operation.
            request.headers[HEADER] = self._make_key(request)
        key = request.headers[HEADER]
        return Call(key, self._retries, clock=self._clock, now=self._now, random=self._random)


def _random_key(_: httpx.Request) -> str:
    return str(uuid4())


class IdempotentTransport(_Settings, httpx.BaseTransport):
    """Wraps a transport; httpx's own unless another one is given.

    Args:
        transport: what sends.
        retries: how often and how long.
        methods: the methods that get a key. A request that has one is treated alike, whatever its method.
        make_key: makes the key of a request.
        max_buffered_bytes: how much of a request's body, and of an answer's, is kept in memory. A longer answer is
            handed on as it comes, and is not asked for again if it breaks off.
        sleep, clock, now, random: for tests.
    """

    def __init__(
        self,
        transport: httpx.BaseTransport | None = None,
        retries: Retries = Retries(),  # noqa: B008 - it is frozen
        *,
        methods: Iterable[str] = _METHODS,
        make_key: Callable[[httpx.Request], str] = _random_key,
        max_buffered_bytes: int = _BUFFER,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        random: Callable[[], float] = _random.random,
    ) -> None:
        super().__init__(
            retries,
            methods=methods,
            make_key=make_key,
            max_buffered_bytes=max_buffered_bytes,
            clock=clock,
            now=now,
            random=random,
        )
        self._transport = httpx.HTTPTransport() if transport is None else transport
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send until answered."""
        call = self._begin(request)
        if call is None:
            return self._transport.handle_request(request)
        self._keep_body(request)
        while True:
            try:
                response = self._keep_answer(self._transport.handle_request(_attempt(request, call)))
            except _UNANSWERED as error:
                pause = call.pause_after_error()
                if pause is None:
                    raise
                _note(call, repr(error), pause)
            else:
                pause = call.pause_after(response.status_code, response.headers, _explanation(response))
                if pause is None:
                    return _summed_up(response, call)
                response.close()
                _note(call, str(response.status_code), pause)
            self._sleep(pause)

    def _keep_body(self, request: httpx.Request) -> None:
        if not isinstance(request.stream, httpx.ByteStream):
            assert isinstance(request.stream, httpx.SyncByteStream)
            body = bytearray()
            for chunk in request.stream:
                body += chunk
                if len(body) > self._limit:
                    raise UnrepeatableBody(self._limit)
            request.stream = httpx.ByteStream(bytes(body))

    def _keep_answer(self, response: httpx.Response) -> httpx.Response:
        """Read the body, so that one that breaks off is found out while the request can still be repeated."""
        if _is_endless(response):
            return response
        assert isinstance(response.stream, httpx.SyncByteStream)
        try:
            rest = iter(response.stream)
            body = bytearray()
            for chunk in rest:
                body += chunk
                if len(body) > self._limit:
                    return _with_stream(response, _Resumed(bytes(body), rest, response))
            response.close()
        except BaseException:
            response.close()
            raise
        return _with_stream(response, httpx.ByteStream(bytes(body)))

    def __enter__(self) -> Self:
        """Open the wrapped transport."""
        self._transport.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close it."""
        self._transport.__exit__(exc_type, exc_value, traceback)

    def close(self) -> None:
        """Close the wrapped transport."""
        self._transport.close()


class AsyncIdempotentTransport(_Settings, httpx.AsyncBaseTransport):
    """The same for `httpx.AsyncClient`. `sleep` is awaited."""

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        retries: Retries = Retries(),  # noqa: B008 - it is frozen
        *,
        methods: Iterable[str] = _METHODS,
        make_key: Callable[[httpx.Request], str] = _random_key,
        max_buffered_bytes: int = _BUFFER,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        random: Callable[[], float] = _random.random,
    ) -> None:
        super().__init__(
            retries,
            methods=methods,
            make_key=make_key,
            max_buffered_bytes=max_buffered_bytes,
            clock=clock,
            now=now,
            random=random,
        )
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport
        self._sleep = sleep

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send until answered."""
        call = self._begin(request)
        if call is None:
            return await self._transport.handle_async_request(request)
        await self._keep_body(request)
        while True:
            try:
                response = await self._keep_answer(await self._transport.handle_async_request(_attempt(request, call)))
            except _UNANSWERED as error:
                pause = call.pause_after_error()
                if pause is None:
                    raise
                _note(call, repr(error), pause)
            else:
                pause = call.pause_after(response.status_code, response.headers, _explanation(response))
                if pause is None:
                    return _summed_up(response, call)
                await response.aclose()
                _note(call, str(response.status_code), pause)
            await self._sleep(pause)

    async def _keep_body(self, request: httpx.Request) -> None:
        if not isinstance(request.stream, httpx.ByteStream):
            assert isinstance(request.stream, httpx.AsyncByteStream)
            body = bytearray()
            async for chunk in request.stream:
                body += chunk
                if len(body) > self._limit:
                    raise UnrepeatableBody(self._limit)
            request.stream = httpx.ByteStream(bytes(body))

    async def _keep_answer(self, response: httpx.Response) -> httpx.Response:
        """Read the body, so that one that breaks off is found out while the request can still be repeated."""
        if _is_endless(response):
            return response
        assert isinstance(response.stream, httpx.AsyncByteStream)
        try:
            rest = aiter(response.stream)
            body = bytearray()
            async for chunk in rest:
                body += chunk
                if len(body) > self._limit:
                    return _with_stream(response, _AsyncResumed(bytes(body), rest, response))
            await response.aclose()
        except BaseException:
            await response.aclose()
            raise
        return _with_stream(response, httpx.ByteStream(bytes(body)))

    async def __aenter__(self) -> Self:
        """Open the wrapped transport."""
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close it."""
        await self._transport.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._transport.aclose()


class _Resumed(httpx.SyncByteStream):
    """What was read of an answer, then the rest of it."""

    def __init__(self, read: bytes, rest: Iterator[bytes], response: httpx.Response) -> None:
        self._read = read
        self._rest = rest
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield self._read
        yield from self._rest

    def close(self) -> None:
        self._response.close()


class _AsyncResumed(httpx.AsyncByteStream):
    """What was read of an answer, then the rest of it."""

    def __init__(self, read: bytes, rest: AsyncIterator[bytes], response: httpx.Response) -> None:
        self._read = read
        self._rest = rest
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._read
        async for chunk in self._rest:
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


def _attempt(request: httpx.Request, call: Call) -> httpx.Request:
    """Return a copy of the request, for an attempt that waits no longer than the call has time."""
    left = call.begin_attempt()
    given: dict[str, float | None] = request.extensions.get("timeout", {})
    timeout = {name: left if (limit := given.get(name)) is None else min(limit, left) for name in _TIMEOUTS}
    extensions = {**request.extensions, "timeout": timeout}
    return httpx.Request(
        request.method, request.url, headers=request.headers, stream=request.stream, extensions=extensions
    )


def _is_endless(response: httpx.Response) -> bool:
    """Tell whether an answer is a stream of events, which has no end to wait for."""
    return str(response.headers.get("Content-Type", "")).lower().startswith("text/event-stream")


def _explanation(response: httpx.Response) -> bytes:
    """Return the decoded body of a conflict, the one answer whose body counts; nothing, if it was not kept."""
    if response.status_code != httpx.codes.CONFLICT or not isinstance(response.stream, httpx.ByteStream):
        return b""
    return _with_stream(response, response.stream).read()


def _with_stream(response: httpx.Response, stream: Any) -> httpx.Response:
    return httpx.Response(response.status_code, headers=response.headers, stream=stream, extensions=response.extensions)


def _summed_up(response: httpx.Response, call: Call) -> httpx.Response:
    response.extensions["idempotency"] = call.result(response.headers)
    return response


def _note(call: Call, reason: str, pause: float) -> None:
    _log.info(
        "httpx.retry",
        extra={"idem_key": call.key, "attempt": call.attempts, "reason": reason, "pause": round(pause, 3)},
    )

"""A server that answers from a script, and a caller that uses either transport."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from pyidem.httpx import AsyncIdempotentTransport, IdempotentTransport

URL = "http://shop.test/refunds"
Step = httpx.Response | Exception


class Script:
    """Answers requests with one step after another, and keeps what arrived."""

    def __init__(self, *steps: Step) -> None:
        self.requests: list[httpx.Request] = []
        self._steps = list(steps)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    @property
    def keys(self) -> list[str | None]:
        return [request.headers.get("Idempotency-Key") for request in self.requests]


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.seconds += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)

    def __call__(self) -> float:
        return self.seconds


class Caller:
    """Sends with one of the two transports. Chance is what `random` says, and time passes by sleeping alone."""

    def __init__(self, flavour: str) -> None:
        self.time = Time()
        self.random = 1.0
        self.client: dict[str, Any] = {}
        self._flavour = flavour

    def post(self, inner: Any, *arguments: Any, **options: Any) -> httpx.Response:
        return self.send(
            inner, lambda client: client.build_request("POST", URL, json={"cents": 1}), *arguments, **options
        )

    def send(
        self,
        inner: Any,
        build: Callable[[Any], httpx.Request],
        *arguments: Any,
        stream: bool = False,
        then: Callable[[httpx.Response], None] = lambda _: None,
        **options: Any,
    ) -> httpx.Response:
        """Send what `build` makes of the client; `inner` is a script, or None for the network."""
        given = {"clock": self.time, "random": lambda: self.random, **options}
        if self._flavour == "sync":
            below = inner if inner is None else httpx.MockTransport(inner)
            transport = IdempotentTransport(below, *arguments, **{"sleep": self.time.sleep, **given})
            with httpx.Client(transport=transport, **self.client) as client:
                response = client.send(build(client), stream=stream)
                then(response)
                response.read()
                return response

        async def call() -> httpx.Response:
            below = inner if inner is None else httpx.MockTransport(inner)
            transport = AsyncIdempotentTransport(below, *arguments, **{"sleep": self.time.sleep_async, **given})
            async with httpx.AsyncClient(transport=transport, **self.client) as client:
                response = await client.send(build(client), stream=stream)
                then(response)
                await response.aread()
                return response

        return asyncio.run(call())

    def once(self, *chunks: bytes) -> Any:
        """Return a body that can be read only once, of the kind that the client takes."""
        if self._flavour == "sync":
            return (chunk for chunk in chunks)
        return self._once_async(chunks)

    @staticmethod
    async def _once_async(chunks: tuple[bytes, ...]) -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk


class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of an answer, chunk by chunk."""

    def __init__(self, steps: Iterator[bytes]) -> None:
        self._steps = steps

    def __iter__(self) -> Iterator[bytes]:
        yield from self._steps

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in self._steps:
            yield step

    def close(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


@pytest.fixture(params=["sync", "async"])
def caller(request: pytest.FixtureRequest) -> Caller:
    return Caller(request.param)

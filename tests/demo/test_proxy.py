"""The proxy does to a request what its hazards say, and tells what it has seen."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import h11
import httpx
import pytest

from pyidem.demo.fate import Fate
from pyidem.demo.proxy import Hazards, Passage, Proxy
from pyidem.demo.wire import Answer, Request, encode, receive_request

ANSWER = Answer(
    201,
    (("Content-Length", "9"), ("Location", "/refunds/1"), ("X-Twice", "a"), ("X-Twice", "b")),
    b'{"id": 1}',
    b"Made",
)


@dataclass
class Origin:
    """A server that answers the same to every request, or hangs up on it."""

    port: int = 0
    hangs_up: bool = False
    requests: list[Request] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        request = await receive_request(connection, reader)
        assert request is not None
        self.requests.append(request)
        if not self.hangs_up:
            writer.write(encode(connection, ANSWER))
        writer.close()


class Network:
    """Some origins behind a proxy, and what the proxy has told."""

    def __init__(self, cleanup: AsyncExitStack) -> None:
        self.origins = [Origin(), Origin(), Origin()]
        self.seen: list[tuple[Passage, bool, bool]] = []
        self._cleanup = cleanup

    @property
    def requests(self) -> list[Request]:
        return [request for origin in self.origins for request in origin.requests]

    async def open(self, seed: str = "seed", **hazards: Any) -> httpx.AsyncClient:
        for origin in [origin for origin in self.origins if not origin.port]:
            server = await self._cleanup.enter_async_context(
                await asyncio.start_server(origin.serve, "127.0.0.1", origin.port)
            )
            origin.port = server.sockets[0].getsockname()[1]
        ports = [origin.port for origin in self.origins]
        proxy = await self._cleanup.enter_async_context(Proxy(ports, Hazards(**hazards), seed, self._observe))
        return await self._cleanup.enter_async_context(httpx.AsyncClient(base_url=f"http://127.0.0.1:{proxy.port}"))

    def _observe(self, _: Request, answer: Answer | None, passage: Passage, duplicate: bool) -> None:
        self.seen.append((passage, answer is not None, duplicate))


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with AsyncExitStack() as cleanup:
        yield Network(cleanup)


async def post(client: httpx.AsyncClient, key: str = "k") -> httpx.Response:
    return await client.post("/refunds?a=%20b", content=b'{"amount": 1}', headers={"Idempotency-Key": key})


async def test_without_hazards_request_and_answer_arrive_as_they_were_sent(network: Network) -> None:
    client = await network.open()

    response = await post(client)

    (request,) = network.requests
    assert (request.method, request.target, request.body) == ("POST", "/refunds?a=%20b", b'{"amount": 1}')
    assert request.header("idempotency-key") == "k"
    assert (response.status_code, response.reason_phrase, response.content) == (201, "Made", ANSWER.body)
    assert [(name.decode(), value.decode()) for name, value in response.headers.raw] == list(ANSWER.headers)
    assert network.seen == [(Passage.DELIVERED, True, False)]


async def test_a_connection_serves_several_requests(network: Network) -> None:
    client = await network.open()

    ports = {(await post(client)).extensions["network_stream"].get_extra_info("client_addr")[1] for _ in range(3)}

    assert len(ports) == 1


async def test_a_lost_request_never_arrives(network: Network) -> None:
    client = await network.open(request_lost=1)

    with pytest.raises(httpx.RemoteProtocolError):
        await post(client)

    assert network.requests == []
    assert network.seen == [(Passage.REQUEST_LOST, False, False)]


async def test_a_lost_answer_was_given(network: Network) -> None:
    client = await network.open(answer_lost=1)

    with pytest.raises(httpx.RemoteProtocolError):
        await post(client)

    assert len(network.requests) == 1
    assert network.seen == [(Passage.ANSWER_LOST, True, False)]


async def test_a_cut_answer_breaks_off_in_its_body(network: Network) -> None:
    client = await network.open(answer_cut=1)

    async with client.stream("POST", "/refunds") as response:
        assert response.status_code == 201
        with pytest.raises(httpx.RemoteProtocolError):
            await response.aread()

    assert network.seen == [(Passage.ANSWER_CUT, True, False)]


async def test_whoever_hangs_up_on_the_proxy_is_seen_as_broken_off(network: Network) -> None:
    for origin in network.origins:
        origin.hangs_up = True
    client = await network.open()

    with pytest.raises(httpx.RemoteProtocolError):
        await post(client)

    assert network.seen == [(Passage.BROKEN_OFF, False, False)]


async def test_a_duplicated_request_reaches_several_and_is_answered_once(network: Network) -> None:
    client = await network.open(duplicated=1)

    response = await post(client)

    assert response.status_code == 201
    assert len(network.requests) in (2, 3)
    assert all(len(origin.requests) <= 1 for origin in network.origins)
    assert [duplicate for _, _, duplicate in network.seen].count(False) == 1


async def test_a_delayed_request_takes_its_time(network: Network) -> None:
    client = await network.open(delayed=1, delay=0.2)

    began = time.monotonic()
    await post(client)

    assert time.monotonic() - began >= 0.2


async def test_a_fate_travels_with_the_request(network: Network) -> None:
    client = await network.open(fates={Fate.DIE_AFTER_PROVIDER: 1})

    await post(client)

    assert network.requests[0].header("Fate") == "die-after-provider"


async def test_misfortunes_depend_on_the_seed_the_key_and_the_attempt_alone(network: Network) -> None:
    async def misfortunes(seed: str, key: str) -> list[Passage]:
        client = await network.open(seed, request_lost=0.3, answer_lost=0.3)
        network.seen.clear()
        for _ in range(30):
            try:
                await post(client, key)
            except httpx.RemoteProtocolError:
                continue
        return [passage for passage, _, _ in network.seen]

    first = await misfortunes("seed", "k")

    assert await misfortunes("seed", "k") == first
    assert await misfortunes("seed", "other") != first
    assert await misfortunes("another seed", "k") != first
    assert set(first) == {Passage.DELIVERED, Passage.REQUEST_LOST, Passage.ANSWER_LOST}

"""The transports on a real network: a server that drops connections and cuts its answers."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator

import anyio
import httpx
import pytest

from pyidem.httpx import AsyncIdempotentTransport, Retries
from tests.httpx_client.conftest import Caller

ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\nIdempotency-Replayed: true\r\n\r\nwhole"
BUSY = b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n"


class Server:
    """For each request sends the next of some pieces of bytes, and hangs up unless that was a whole answer."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.keys: list[str] = []
        self.connections = 0
        self._pieces = pieces
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while self._pieces:
            connection, _ = self._listener.accept()
            self.connections += 1
            with connection:
                while self._pieces and self._answer(connection):
                    pass

    def _answer(self, connection: socket.socket) -> bool:
        received = b""
        while not received.endswith(b'{"cents":1}'):
            chunk = connection.recv(65536)
            if not chunk:
                return False
            received += chunk
        head = received.decode().lower()
        self.keys.append(head.partition("idempotency-key: ")[2].partition("\r\n")[0])
        piece = self._pieces.pop(0)
        connection.sendall(piece)
        return piece in (ANSWER, BUSY)

    def close(self) -> None:
        self._thread.join(10)
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers = []

    def start(*pieces: bytes) -> Server:
        servers.append(Server(list(pieces)))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def post(caller: Caller, server: Server) -> httpx.Response:
    return caller.send(None, lambda client: client.build_request("POST", server.url, json={"cents": 1}))


@pytest.mark.parametrize("piece", [b"", ANSWER[:10], ANSWER[:-1]], ids=["nothing", "half a head", "half a body"])
def test_an_answer_that_was_lost_or_cut_is_asked_for_again_under_the_same_key(
    piece: bytes, caller: Caller, serve: Callable[..., Server]
) -> None:
    server = serve(piece, piece, ANSWER)

    response = post(caller, server)

    assert (response.status_code, response.text) == (201, "whole")
    assert response.extensions["idempotency"].replayed
    assert response.extensions["idempotency"].attempts == len(server.keys) == 3
    assert len(set(server.keys)) == 1


def test_the_connection_is_used_again_after_a_refusal(caller: Caller, serve: Callable[..., Server]) -> None:
    server = serve(BUSY, BUSY, ANSWER)

    assert post(caller, server).status_code == 201
    assert server.connections == 1


def test_nobody_listening_is_an_error_in_the_end(caller: Caller) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(httpx.ConnectError):
        caller.send(None, lambda client: client.build_request("POST", f"http://127.0.0.1:{port}/"), Retries(attempts=3))

    assert len(caller.time.pauses) == 2


def test_a_call_that_is_cancelled_while_it_pauses_ends_at_once() -> None:
    pausing = anyio.Event()

    async def pause(_: float) -> None:
        pausing.set()
        await anyio.sleep_forever()

    async def call() -> None:
        transport = AsyncIdempotentTransport(httpx.MockTransport(lambda _: httpx.Response(503)), sleep=pause)
        async with httpx.AsyncClient(transport=transport) as client, anyio.create_task_group() as group:
            group.start_soon(client.post, "http://shop.test/")
            await pausing.wait()
            group.cancel_scope.cancel()

    asyncio.run(asyncio.wait_for(call(), 10))

"""HTTP/1.1 over a connection that somebody may close at any point."""

import asyncio
from dataclasses import dataclass
from typing import Self, TypeAlias

import h11

Headers: TypeAlias = tuple[tuple[str, str], ...]

_CHUNK = 65536


class BrokenOff(Exception):
    """The other side has hung up in the middle of a message."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, read to its end."""

    method: str
    target: str
    headers: Headers
    body: bytes

    def header(self, name: str) -> str:
        """Return the value of a header; an empty one, if there is none."""
        return next((value for header, value in self.headers if header.lower() == name.lower()), "")

    def plus(self, name: str, value: str) -> Self:
        """Return a copy with one more header."""
        return type(self)(self.method, self.target, (*self.headers, (name, value)), self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, read to its end."""

    status: int
    headers: Headers
    body: bytes
    reason: bytes = b""


async def receive_request(connection: h11.Connection, reader: asyncio.StreamReader) -> Request | None:
    """Return the next request on a connection; None, if it was closed instead."""
    event = await _next_event(connection, reader)
    if not isinstance(event, h11.Request):
        return None
    body = await _rest(connection, reader)
    return Request(event.method.decode(), event.target.decode(), _decoded(event), body)


def encode(connection: h11.Connection, answer: Answer) -> bytes:
    """Return an answer as it goes over the connection."""
    response = h11.Response(status_code=answer.status, headers=_encoded(answer.headers), reason=answer.reason)
    head = connection.send(response)
    body = connection.send(h11.Data(data=answer.body))
    return (head or b"") + (body or b"") + (connection.send(h11.EndOfMessage()) or b"")


async def exchange(port: int, request: Request) -> Answer:
    """Send a request to a port of this machine, on a connection of its own, and return the answer.

    Raises:
        BrokenOff: there was none, or not all of it.
    """
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return await _exchange(request, reader, writer)
        finally:
            writer.close()
    except (OSError, h11.RemoteProtocolError) as error:
        raise BrokenOff from error


async def _exchange(request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answer:
    connection = h11.Connection(h11.CLIENT)
    headers = _encoded((*without_connection(request.headers), ("Connection", "close")))
    head = h11.Request(method=request.method, target=request.target, headers=headers)
    for event in (head, h11.Data(data=request.body), h11.EndOfMessage()):
        writer.write(connection.send(event) or b"")
    await writer.drain()
    response = await _next_event(connection, reader)
    if not isinstance(response, h11.Response):
        raise BrokenOff
    body = await _rest(connection, reader)
    return Answer(response.status_code, without_connection(_decoded(response)), body, response.reason)


def without_connection(headers: Headers) -> Headers:
    """Return the headers without the one that speaks of this connection alone."""
    return tuple((name, value) for name, value in headers if name.lower() != "connection")


async def _next_event(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(_CHUNK))
    return event


async def _rest(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while isinstance(event := await _next_event(connection, reader), h11.Data):
        body += event.data
    if not isinstance(event, h11.EndOfMessage):
        raise BrokenOff
    return bytes(body)


def _decoded(message: h11.Request | h11.Response) -> Headers:
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in message.headers.raw_items())


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]

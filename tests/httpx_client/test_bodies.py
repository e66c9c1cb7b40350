"""What is sent is sent in full every time, and what comes back is whole or asked for again."""

import gzip
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import httpx
import pytest

from pyidem.httpx import Retries, UnrepeatableBody
from tests.httpx_client.conftest import URL, Caller, Script, Stream


def sent(script: Script) -> list[bytes]:
    return [request.read() for request in script.requests]


def body(kind: str, caller: Caller) -> dict[str, Any]:
    return {
        "none": {},
        "bytes": {"content": b"refund"},
        "json": {"json": {"cents": 1}},
        "form": {"data": {"cents": "1"}},
        "once": {"content": caller.once(b"ref", b"und")},
        "files": {"files": {"receipt": ("r.txt", BytesIO(b"receipt"))}, "data": {"cents": "1"}},
    }[kind]


@pytest.mark.parametrize("kind", ["none", "bytes", "json", "form", "once", "files"])
def test_every_attempt_sends_the_same_body(kind: str, caller: Caller) -> None:
    answers = [httpx.ReadError("lost"), httpx.Response(503), httpx.Response(201)]
    consumed: list[bytes] = []
    script = Script(*answers)

    def reading(request: httpx.Request) -> httpx.Response:
        consumed.append(request.read())
        return script(request)

    caller.send(reading, lambda client: client.build_request("POST", URL, **body(kind, caller)))

    assert len(consumed) == 3
    assert len(set(consumed)) == 1
    assert bool(consumed[0]) == (kind != "none")


def test_a_body_that_is_too_large_to_keep_is_refused_before_anything_is_sent(caller: Caller) -> None:
    script = Script()

    with pytest.raises(UnrepeatableBody, match="more than 5 bytes: pass bytes, or raise max_buffered_bytes"):
        caller.send(
            script,
            lambda client: client.build_request("POST", URL, content=caller.once(b"ref", b"und")),
            max_buffered_bytes=5,
        )

    assert script.requests == []


def test_a_body_of_just_the_size_is_kept(caller: Caller) -> None:
    script = Script(httpx.ReadError("lost"), httpx.Response(201))

    caller.send(
        script,
        lambda client: client.build_request("POST", URL, content=caller.once(b"ref", b"und")),
        max_buffered_bytes=6,
    )

    assert sent(script) == [b"refund", b"refund"]


def test_bytes_are_sent_again_whatever_their_size(caller: Caller) -> None:
    script = Script(httpx.ReadError("lost"), httpx.Response(201))

    caller.send(script, lambda client: client.build_request("POST", URL, content=b"refund"), max_buffered_bytes=1)

    assert sent(script) == [b"refund", b"refund"]


def test_the_body_of_a_request_without_a_key_is_not_kept(caller: Caller) -> None:
    script = Script(httpx.Response(200))

    caller.send(
        script,
        lambda client: client.build_request("PUT", URL, content=caller.once(b"ref", b"und")),
        max_buffered_bytes=1,
    )

    assert sent(script) == [b"refund"]


def breaking(*chunks: bytes) -> Iterator[bytes]:
    yield from chunks
    raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


def test_an_answer_that_breaks_off_is_asked_for_again(caller: Caller) -> None:
    script = Script(httpx.Response(201, stream=Stream(breaking(b"half"))), httpx.Response(201, text="whole"))

    response = caller.post(script)

    assert response.text == "whole"
    assert response.extensions["idempotency"].attempts == 2


def test_an_answer_that_breaks_off_for_ever_is_an_error(caller: Caller) -> None:
    script = Script(*[httpx.Response(201, stream=Stream(breaking(b"half"))) for _ in range(2)])

    with pytest.raises(httpx.RemoteProtocolError):
        caller.post(script, Retries(attempts=2))


def test_an_answer_that_is_too_large_to_keep_is_handed_on_as_it_comes(caller: Caller) -> None:
    read = []

    def chunks() -> Iterator[bytes]:
        for chunk in (b"a" * 4, b"b" * 4, b"c" * 4):
            read.append(chunk)
            yield chunk

    script = Script(httpx.Response(201, stream=Stream(chunks())))
    before: list[int] = []
    response = caller.post(script, stream=True, then=lambda _: before.append(len(read)), max_buffered_bytes=6)

    assert before == [2]
    assert response.content == b"aaaabbbbcccc"


def test_events_are_handed_on_as_they_come(caller: Caller) -> None:
    read = []

    def events() -> Iterator[bytes]:
        for event in (b"data: 1\n\n", b"data: 2\n\n"):
            read.append(event)
            yield event

    headers = {"Content-Type": "text/event-stream; charset=utf-8"}
    script = Script(httpx.Response(200, headers=headers, stream=Stream(events())))
    before: list[int] = []
    response = caller.post(script, stream=True, then=lambda _: before.append(len(read)))

    assert before == [0]
    assert response.content == b"data: 1\n\ndata: 2\n\n"
    assert response.extensions["idempotency"].attempts == 1


def test_a_compressed_answer_is_read_as_ever(caller: Caller) -> None:
    packed = gzip.compress(b'{"code": "idempotency_request_in_progress"}')
    headers = {"Content-Encoding": "gzip"}
    script = Script(
        httpx.Response(409, headers=headers, stream=Stream(iter([packed]))),
        httpx.Response(201, headers=headers, stream=Stream(iter([packed]))),
    )

    response = caller.post(script)

    assert response.json() == {"code": "idempotency_request_in_progress"}
    assert response.extensions["idempotency"].attempts == 2


def test_only_the_answer_that_counts_reaches_the_caller_and_all_others_are_closed(caller: Caller) -> None:
    closed = []

    class Answer(Stream):
        def close(self) -> None:
            closed.append(self)

        async def aclose(self) -> None:
            closed.append(self)

    answers = [Answer(iter([b"no"])), Answer(iter([b"yes"]))]
    script = Script(*[httpx.Response(status, stream=one) for status, one in zip((503, 201), answers, strict=True)])

    assert caller.post(script).text == "yes"
    assert closed == answers


@pytest.mark.parametrize("headers", [{"Content-Type": "text/event-stream"}, {}], ids=["events", "too large"])
def test_an_answer_that_was_not_read_is_closed_before_the_next_attempt(headers: dict[str, str], caller: Caller) -> None:
    closed = []

    class Answer(Stream):
        def close(self) -> None:
            closed.append(self)

        async def aclose(self) -> None:
            closed.append(self)

    unread = Answer(iter([b"not", b"read"]))
    script = Script(httpx.Response(503, headers=headers, stream=unread), httpx.Response(201))

    caller.post(script, max_buffered_bytes=1)

    assert closed == [unread]

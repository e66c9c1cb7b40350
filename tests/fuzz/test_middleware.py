"""Whatever request comes in, the middleware answers as the application does or with a refusal of its own, never 5xx."""

import asyncio
import os
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from pyidem import AsyncIdem, Idem, asgi, wsgi
from tests.support.database import Database

EXAMPLES = settings(
    max_examples=int(os.environ.get("PYIDEM_FUZZ_EXAMPLES", "20")) * 3,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
# what a client can send in a header, as servers hand it on: any byte but the ends of the line; some let NUL through
header_bytes = st.binary(max_size=60).map(
    lambda value: value.replace(b"\r", b"").replace(b"\n", b"")
) | st.sampled_from(
    [b'"k"', b"k", b'"a", "b"', b'"', b"k" * 300, b"\x00", b"\xff\xfe", b"a b", b'"\\""', "é".encode(), b" k ", b""]
)
requests = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["POST", "PATCH", "PUT", "DELETE", "post", "QUERY", "X" * 200]),
        "path": st.binary(max_size=40).map(lambda value: b"/" + value.replace(b"?", b"")),
        "query": st.binary(max_size=40),
        "keys": st.lists(header_bytes, max_size=3),
        "content_type": st.none() | header_bytes | st.sampled_from([b"application/json", b"multipart/form-data"]),
        "body": st.binary(max_size=200)
        | st.sampled_from([b"[" * 5000, b'{"a": 1e999999}', b'"\\u0000"', b"x" * 9_000]),
    }
)
# the application's own, and refusals
ALLOWED = {201, 400, 409, 413, 422}


@pytest.fixture
def pool(db: Database) -> Iterator[ConnectionPool]:
    with ConnectionPool(db.dsn, min_size=1, max_size=2, open=True) as opened:
        yield opened


def test_wsgi(pool: ConnectionPool) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        environ["wsgi.input"].read()
        start_response("201 Created", [("content-type", "text/plain")])
        return [b"done"]

    protected = wsgi.IdempotencyMiddleware(app, Idem(pool), scope=lambda _: "client:1")

    @EXAMPLES
    @given(request=requests)
    def attempt(request: dict[str, Any]) -> None:
        environ = {
            "REQUEST_METHOD": request["method"],
            "PATH_INFO": request["path"].decode("latin-1"),
            "QUERY_STRING": request["query"].decode("latin-1"),
            "CONTENT_LENGTH": str(len(request["body"])),
            "wsgi.input": BytesIO(request["body"]),
        }
        if request["keys"]:
            environ["HTTP_IDEMPOTENCY_KEY"] = ",".join(key.decode("latin-1") for key in request["keys"])
        if request["content_type"] is not None:
            environ["CONTENT_TYPE"] = request["content_type"].decode("latin-1")
        statuses: list[str] = []
        answer = protected(environ, lambda status, _headers, _info=None: statuses.append(status))
        b"".join(answer)
        if hasattr(answer, "close"):
            answer.close()
        assert int(statuses[0].split()[0]) in ALLOWED, statuses

    attempt()


def test_asgi(db: Database) -> None:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})

    async def ask(protected: Any, request: dict[str, Any]) -> int:
        headers = [(b"idempotency-key", key) for key in request["keys"]]
        if request["content_type"] is not None:
            headers.append((b"content-type", request["content_type"]))
        scope = {
            "type": "http",
            "method": request["method"],
            "path": request["path"].decode("utf-8", "replace"),
            "raw_path": request["path"],
            "query_string": request["query"],
            "headers": headers,
        }
        sent: list[dict[str, Any]] = []
        pending = [{"type": "http.request", "body": request["body"], "more_body": False}]

        async def receive() -> dict[str, Any]:
            return pending.pop() if pending else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await protected(scope, receive, send)
        return int(sent[0]["status"])

    with asyncio.Runner() as runner:
        pool = AsyncConnectionPool(db.dsn, min_size=1, max_size=2, open=False)
        runner.run(pool.open())
        try:
            protected = asgi.IdempotencyMiddleware(app, AsyncIdem(pool), scope=lambda _: "client:1")

            @EXAMPLES
            @given(request=requests)
            def attempt(request: dict[str, Any]) -> None:
                status = runner.run(ask(protected, request))
                assert status in ALLOWED

            attempt()
        finally:
            runner.run(pool.close())

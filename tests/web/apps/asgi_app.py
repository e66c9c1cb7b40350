"""Starlette in the middleware: a route for each way in which an answer may come to its end, or not."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from pyidem import AsyncIdem
from pyidem.asgi import IdempotencyMiddleware, Protection
from tests.web.apps.limits import LARGE, LIMIT
from tests.web.apps.shop import DSN, GATE, INSERT, SCOPE_HEADER, answer_of

pool = AsyncConnectionPool[psycopg.AsyncConnection[Any]](
    DSN, min_size=1, max_size=int(os.environ.get("APP_POOL", "4")), open=False, timeout=20
)


async def insert(request: Request) -> int:
    """Do the work, in a connection of the application's own."""
    async with pool.connection() as connection:
        cursor = await connection.execute(INSERT, [request.query_params["name"]])
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def at_gate(name: str) -> None:
    async with await psycopg.AsyncConnection.connect(DSN, autocommit=True) as connection:
        await connection.execute(GATE, [name, name])


async def created(request: Request) -> Response:
    number = await insert(request)
    response = JSONResponse(answer_of(number), 201, {"location": f"/orders/{number}"})
    for value in ("a", "b"):
        response.headers.append("link", f"</{value}>; rel={value}")
        response.headers.append("set-cookie", f"{value}={number}")
    return response


async def status(request: Request) -> Response:
    await insert(request)
    return JSONResponse({"status": request.path_params["status"]}, request.path_params["status"])


async def once_then(request: Request) -> Response:
    """Answer with a status the first time, and with 201 later."""
    number = await insert(request)
    async with pool.connection() as connection:
        cursor = await connection.execute("select count(*) from orders where name = %s", [request.query_params["name"]])
        row = await cursor.fetchone()
    assert row is not None
    return JSONResponse(answer_of(number), request.path_params["status"] if row[0] == 1 else 201)


async def empty(request: Request) -> Response:
    await insert(request)
    return Response(status_code=204)


async def nothing(request: Request) -> Response:
    await insert(request)
    return Response(b"", 200, media_type="text/plain")


async def redirect(request: Request) -> Response:
    await insert(request)
    return RedirectResponse("/elsewhere", 303)


async def file(request: Request) -> Response:
    await insert(request)
    return FileResponse(__file__)


async def stream(request: Request) -> Response:
    """Send three parts, the last two after the gate."""
    await insert(request)
    name = request.query_params["name"]

    async def parts() -> AsyncIterator[bytes]:
        yield b"one,"
        yield b"two,"
        await at_gate(name)
        yield b"three"

    return StreamingResponse(parts(), 201, media_type="text/plain")


async def broken_stream(request: Request) -> Response:
    await insert(request)

    async def parts() -> AsyncIterator[bytes]:
        yield b"one,"
        yield b"two,"
        raise RuntimeError("in the middle of the answer")

    return StreamingResponse(parts())


async def sized(request: Request) -> Response:
    await insert(request)
    size = int(request.query_params["size"])

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, size, 32 * 1024):
            yield b"x" * min(32 * 1024, size - start)

    return StreamingResponse(parts(), 201, {"content-length": str(size)}, media_type="text/plain")


async def events(request: Request) -> Response:
    await insert(request)
    name = request.query_params["name"]

    async def parts() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        await at_gate(name)
        yield b"data: 2\n\n"

    return StreamingResponse(parts(), media_type="text/event-stream")


async def raises(request: Request) -> Response:
    await insert(request)
    raise ValueError("a fault of the application")


async def not_found(request: Request) -> Response:
    await insert(request)
    raise HTTPException(404, "no such thing")


async def background(request: Request) -> Response:
    number = await insert(request)
    return JSONResponse(answer_of(number), 201, background=BackgroundTask(insert, request))


async def failing_background(request: Request) -> Response:
    number = await insert(request)

    def fail() -> None:
        raise RuntimeError("after the answer")

    return JSONResponse(answer_of(number), 201, background=BackgroundTask(fail))


async def gated(request: Request) -> Response:
    number = await insert(request)
    await at_gate(request.query_params["name"])
    return JSONResponse(answer_of(number), 201)


async def slow(request: Request) -> Response:
    """Take a while, on a connection of the pool."""
    async with pool.connection() as connection:
        await connection.execute("select pg_sleep(0.1)")
        cursor = await connection.execute(INSERT, [request.query_params["name"]])
        row = await cursor.fetchone()
    assert row is not None
    return JSONResponse(answer_of(row[0]), 201)


async def echo(request: Request) -> Response:
    await insert(request)
    return Response(await request.body(), 201, media_type=request.headers.get("content-type"))


async def form(request: Request) -> Response:
    await insert(request)
    async with request.form() as fields:
        upload = fields["file"]
        assert not isinstance(upload, str)
        return JSONResponse({"field": fields["field"], "size": len(await upload.read())}, 201)


async def until_disconnected(request: Request) -> Response:
    """Wait until the caller has hung up, then go on working."""
    await request.body()
    message = await request.receive()
    number = await insert(request)
    return JSONResponse({**answer_of(number), "message": message["type"]}, 201)


async def silent(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
    """Return without an answer."""
    await insert(Request(scope))


class Silent:
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await silent(scope, receive, send)


ENDPOINTS = [
    created, empty, nothing, redirect, file, stream, broken_stream, sized, events, raises, not_found, background,
    failing_background, gated, slow, echo, form, until_disconnected,
]  # fmt: skip


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    async with pool:
        yield


async def client_of(scope: Any) -> str | None:
    return Request(scope).headers.get(SCOPE_HEADER)


def protection_of(scope: Any) -> Protection | None:
    options = {"max_response_bytes": LIMIT, "max_request_bytes": LARGE, "lease": timedelta(seconds=30)}
    match scope["path"].split("/")[1]:
        case "unprotected":
            return None
        case "open":
            return Protection(fail_open=True, **options)
        case "required":
            return Protection(policy="required", **options)
        case "patient":
            return Protection(wait=timedelta(seconds=20), **options)
        case _:
            return Protection(**options)


def routes() -> list[Any]:
    methods = ["GET", "HEAD", "OPTIONS", "POST", "PUT"]
    return [
        *(Route(f"/{endpoint.__name__}", endpoint, methods=methods) for endpoint in ENDPOINTS),
        Route("/status/{status:int}", status, methods=methods),
        Route("/once/{status:int}", once_then, methods=methods),
        Route("/silent", Silent()),
    ]


idem = AsyncIdem(pool)


def protected(app: Any) -> Any:
    return IdempotencyMiddleware(app, idem, scope=client_of, protect=protection_of)


inner = protected(
    Starlette(
        routes=[
            Mount("/compressed_inside", GZipMiddleware(Starlette(routes=routes()), minimum_size=1)),
            *(Mount(f"/{name}", routes=routes()) for name in ("unprotected", "open", "required", "patient")),
            *routes(),
        ]
    )
)


def compressed_outside(app: Any) -> Any:
    return GZipMiddleware(app, minimum_size=1)


_with_lifespan = Starlette(
    routes=[Mount("/compressed_outside", compressed_outside(protected(Starlette(routes=routes())))), Mount("/", inner)],
    lifespan=lifespan,
)
app = _with_lifespan

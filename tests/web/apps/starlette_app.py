"""Starlette: atomic blocks in the endpoint."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyidem import AsyncIdem, HttpCall
from pyidem.starlette import install
from tests.web.apps.shop import DSN, INSERT, SCOPE_HEADER, answer_of

pool = AsyncConnectionPool[psycopg.AsyncConnection[Any]](DSN, min_size=1, max_size=4, open=False)
idem = AsyncIdem(pool)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    async with pool:
        yield


async def create_order(request: Request) -> Response:
    call = await HttpCall.from_starlette(request)
    async with idem.atomic(request.headers[SCOPE_HEADER], call) as op:
        if op.started:
            cursor = await op.connection.execute(INSERT, [call.json()["name"]])
            (number,) = await cursor.fetchone()
            op.complete(201, answer_of(number), headers=[("Location", f"/orders/{number}")])
    return op.response.to_starlette()


async def raise_for_outcome(request: Request) -> Response:
    """Answer by an exception instead."""
    call = await HttpCall.from_starlette(request)
    async with idem.atomic(request.headers[SCOPE_HEADER], call) as op:
        op.raise_for_outcome()
        if op.started:
            op.complete(201)
    return op.response.to_starlette()


app = Starlette(
    routes=[
        Route("/orders", create_order, methods=["POST"]),
        Route("/raising", raise_for_outcome, methods=["POST"]),
    ],
    lifespan=lifespan,
)
install(app)

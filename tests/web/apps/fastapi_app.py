"""FastAPI: the dependency, with SQLAlchemy sessions in coroutines, and with a psycopg pool in plain functions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Any

import psycopg
from fastapi import Depends, FastAPI, Form, HTTPException, Request
from fastapi.responses import Response
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool
from pydantic import BaseModel, PositiveInt
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from pyidem import AsyncIdem, Idem
from pyidem.fastapi import AsyncIdempotent, Idempotent, idempotency, install
from tests.web.apps.shop import DSN, GATE, INSERT, SCOPE_HEADER, answer_of

engine = create_async_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(DSN), pool_size=4, max_overflow=0)
pool = ConnectionPool[psycopg.Connection[Any]](DSN, min_size=1, max_size=4, open=False)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    with pool:
        yield
    await engine.dispose()


class Order(BaseModel):
    name: str
    amount: PositiveInt
    fails: str | None = None


def client_of(request: Request) -> str | None:
    client = request.headers.get(SCOPE_HEADER)
    if client == "revoked":
        raise HTTPException(401)
    return client


app = FastAPI(lifespan=lifespan)
install(app)
protected = idempotency(AsyncIdem(async_sessionmaker(engine)), scope=client_of)
required = idempotency(AsyncIdem(async_sessionmaker(engine)), scope=client_of, policy="required")
stripe = idempotency(AsyncIdem(async_sessionmaker(engine)), scope=client_of, policy="stripe")
patient = idempotency(AsyncIdem(async_sessionmaker(engine)), scope=client_of, wait=timedelta(seconds=20))
protected_sync = idempotency(Idem(pool), scope=client_of)

Session = AsyncIdempotent[AsyncSession]


@app.post("/orders", status_code=201)
async def create_order(order: Order, request: Annotated[Session, Depends(protected)]) -> Response:
    return await work(order, request)


@app.post("/required", status_code=201)
async def create_required(order: Order, request: Annotated[Session, Depends(required)]) -> Response:
    return await work(order, request)


@app.post("/stripe/orders", status_code=201)
async def create_order_like_stripe(order: Order, request: Annotated[Session, Depends(stripe)]) -> Response:
    return await work(order, request)


@app.post("/patient", status_code=201)
async def create_patient(order: Order, request: Annotated[Session, Depends(patient)]) -> Response:
    return await work(order, request)


async def work(order: Order, request: Session) -> Response:
    async with request.atomic() as op:
        if op.started:
            row = await op.session.execute(text(INSERT.replace("%s", ":name")), {"name": order.name})
            number = row.scalar_one()
            match order.fails:
                case "exception":
                    raise HTTPException(404)
                case "answer":
                    op.complete(503, {"error": "try later"})
                case "gate":
                    await op.session.execute(text(GATE.replace("%s", ":name")), {"name": order.name})
                    op.complete(201, answer_of(number))
                case _:
                    op.complete(201, answer_of(number), headers=[("Location", f"/orders/{number}")])
    return op.response.to_starlette()


@app.post("/sync", status_code=201)
def create_order_sync(order: Order, request: Annotated[Idempotent[Any], Depends(protected_sync)]) -> Response:
    with request.atomic() as op:
        if op.started:
            (number,) = op.connection.execute(INSERT, [order.name]).fetchone()
            op.complete(201, answer_of(number))
    return op.response.to_starlette()


@app.post("/leased", status_code=201)
async def create_order_leased(order: Order, request: Annotated[Session, Depends(protected)]) -> Response:
    async with request.leased(state=order.model_dump()) as op:
        if op.started:
            async with op.transaction() as session:
                row = await session.execute(text(INSERT.replace("%s", ":name")), {"name": op.state["name"]})
                body = {**answer_of(row.scalar_one()), "downstream": str(op.downstream_key())}
                op.complete(int(order.fails or "201"), body)
    return op.response.to_starlette()


@app.post("/raising", status_code=201)
async def raise_for_outcome(request: Annotated[Session, Depends(protected)]) -> Response:
    """Answer by an exception instead."""
    async with request.atomic() as op:
        op.raise_for_outcome()
        if op.started:
            op.complete(201)
    return op.response.to_starlette()


@app.post("/form", status_code=201)
async def create_order_of_form(
    name: Annotated[str, Form()], request: Annotated[Session, Depends(protected)]
) -> Response:
    return await work(Order(name=name, amount=1), request)

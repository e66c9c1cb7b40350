"""The refunds API: how an application uses pyidem, in both modes.

Every request names its operation with an idempotency key. It may arrive many times, at several processes at once, and
any of them may die at any point: the refund is made once, and whoever asks gets the same answer, byte for byte.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Protocol, TypeAlias

from fastapi import Depends, FastAPI, HTTPException, Path, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, ConfigDict, Field

from pyidem import AsyncIdem, LostReservation
from pyidem.aio import AsyncLeasedOp
from pyidem.fastapi import AsyncIdempotent, idempotency, install

Database: TypeAlias = AsyncConnection[Any]
Pool: TypeAlias = AsyncConnectionPool[Database]

# Who may call, by bearer token. A real service would look them up.
CLIENTS: Final[Mapping[str, str]] = {"north": "shop-north", "south": "shop-south", "west": "shop-west"}


class ProviderLost(Exception):
    """The provider did not answer: nobody knows whether it has done what it was asked to."""


class PaymentProvider(Protocol):
    """The outside world: it honours an idempotency key of its own."""

    async def transfer(self, order: str, amount: int, *, idempotency_key: str) -> str:
        """Pay an amount back to the customer and return the transfer's name. Raises ProviderLost."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class RefundRequest(_Document):
    """What a client asks for. The amount is in cents."""

    order: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9-]+$", examples=["A-17"])]
    amount: Annotated[int, Field(gt=0, le=10_000_000, examples=[500])]


Method: TypeAlias = Literal["credit", "card", "bank"]


class Refund(RefundRequest):
    """A refund that was made. `transfer` is its name at the payment provider."""

    id: int
    method: Method
    transfer: str | None


class QuoteRequest(_Document):
    """The question what a refund would cost."""

    amount: Annotated[int, Field(gt=0, le=10_000_000, examples=[500])]


class Quote(QuoteRequest):
    """The answer. It is good for two seconds."""

    id: int
    fee: int


class Books:
    """The shop's books."""

    async def enter(
        self, connection: Database, method: Method, request: RefundRequest, transfer: str | None = None
    ) -> Refund:
        """Write a refund down."""
        number = await _insert(
            connection,
            "insert into refund (order_no, amount, method, transfer) values (%s, %s, %s, %s) returning id",
            [request.order, request.amount, method, transfer],
        )
        return Refund(id=number, order=request.order, amount=request.amount, method=method, transfer=transfer)

    async def find(self, connection: Database, number: int) -> Refund | None:
        """Look a refund up."""
        query = "select order_no, amount, method, transfer from refund where id = %s"
        row = await (await connection.execute(query, [number])).fetchone()
        return row and Refund(id=number, order=row[0], amount=row[1], method=row[2], transfer=row[3])

    async def quote(self, connection: Database, request: QuoteRequest) -> Quote:
        """Work out what a refund would cost, and write that down."""
        fee = 25 + request.amount // 100
        number = await _insert(
            connection, "insert into quote (amount, fee) values (%s, %s) returning id", [request.amount, fee]
        )
        return Quote(id=number, amount=request.amount, fee=fee)


class AtProvider:
    """The work at the provider. A first attempt, one that takes over, and a sweeper: all of them do the same.

    Asked once more under the same downstream key, the provider says once more what it has done.
    """

    def __init__(self, provider: PaymentProvider, books: Books) -> None:
        self._provider = provider
        self._books = books

    async def __call__(self, op: AsyncLeasedOp[Database]) -> None:
        """Ask the provider, then write refund and answer down in one transaction."""
        method, request = op.state["method"], RefundRequest(**op.state["request"])
        key = str(op.downstream_key())
        transfer = await self._provider.transfer(request.order, request.amount, idempotency_key=key)
        async with op.transaction() as connection:
            refund = await self._books.enter(connection, method, request, transfer)
            op.complete(201, refund.model_dump(), headers=_location(refund))


def create_app(pool: Pool, provider: PaymentProvider, books: Books) -> FastAPI:
    """Return the application. Whoever calls it opens the pool."""
    app = FastAPI(title="Refunds", version="1", docs_url=None, redoc_url=None, responses=_UNKNOWN_CLIENT)
    install(app)
    idem = AsyncIdem(pool)
    at_provider = AtProvider(provider, books)

    def under(policy: str) -> Any:
        return Depends(idempotency(idem, scope=_client, policy=policy))

    @app.post("/refunds/credit", status_code=201, response_model=Refund)
    async def to_credit(
        request: RefundRequest, once: Annotated[AsyncIdempotent[Database], under("store_credit")]
    ) -> Response:
        """Refund as store credit. That is a write to this database: it commits with the answer, or not at all."""
        async with once.atomic() as op:
            if op.started:
                refund = await books.enter(op.connection, "credit", request)
                op.complete(201, refund.model_dump(), headers=_location(refund))
        return op.response.to_starlette()

    @app.post("/refunds/card", status_code=201, response_model=Refund, responses=_ASK_AGAIN)
    async def to_card(
        request: RefundRequest, once: Annotated[AsyncIdempotent[Database], under("card_refund")]
    ) -> Response:
        """Refund to a card. If this process dies, the next attempt asks the provider again, under the same key."""
        async with once.leased(state=_state("card", request), heartbeat=True) as op:
            if op.started:
                await at_provider(op)
        return op.response.to_starlette()

    @app.post("/refunds/bank", status_code=201, response_model=Refund, responses=_ASK_AGAIN)
    async def to_bank(
        request: RefundRequest, once: Annotated[AsyncIdempotent[Database], under("bank_transfer")]
    ) -> Response:
        """Refund to a bank account. If this process dies, a sweeper finds out what has become of it."""
        async with once.leased(state=_state("bank", request), heartbeat=True) as op:
            if op.started:
                await at_provider(op)
        return op.response.to_starlette()

    @app.post("/quotes", status_code=201, response_model=Quote)
    async def quote(request: QuoteRequest, once: Annotated[AsyncIdempotent[Database], under("quote")]) -> Response:
        """Ask what a refund would cost. Whoever asks for the answer again when it is over, is told so."""
        async with once.atomic() as op:
            if op.started:
                answer = await books.quote(op.connection, request)
                op.complete(201, answer.model_dump())
        return op.response.to_starlette()

    @app.get("/refunds/{number:int}", dependencies=[Depends(_client)], responses=_NOT_FOUND)
    async def show(number: Annotated[int, Path(gt=0, lt=2**63)]) -> Refund:
        """Look a refund up."""
        async with pool.connection() as connection:
            refund = await books.find(connection, number)
        if refund is None:
            raise HTTPException(404, "there is no such refund")
        return refund

    @app.exception_handler(ProviderLost)
    @app.exception_handler(LostReservation)
    async def ask_again(_: Request, __: Exception) -> Response:
        """Say that the outcome is not known here: whoever asks again finishes the work, or is told more."""
        return Response(status_code=503, headers={"Retry-After": "1"})

    return app


def _client(credentials: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> str:
    """Say who is calling: the scope of their keys."""
    client = CLIENTS.get(credentials.credentials)
    if client is None:
        raise HTTPException(401, "unknown token", {"WWW-Authenticate": "Bearer"})
    return client


_UNKNOWN_CLIENT: Final[dict[int | str, dict[str, Any]]] = {401: {"description": "No bearer token, or an unknown one."}}
_ASK_AGAIN: Final[dict[int | str, dict[str, Any]]] = {503: {"description": "The provider did not answer. Ask again."}}
_NOT_FOUND: Final[dict[int | str, dict[str, Any]]] = {404: {"description": "There is no such refund."}}


def _state(method: Method, request: RefundRequest) -> dict[str, Any]:
    return {"method": method, "request": request.model_dump()}


def _location(refund: Refund) -> list[tuple[str, str]]:
    return [("Location", f"/refunds/{refund.id}")]


async def _insert(connection: Database, query: str, values: list[Any]) -> int:
    row = await (await connection.execute(query, values)).fetchone()
    assert row is not None
    return int(row[0])

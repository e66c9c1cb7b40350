"""The simulated payment provider: another company, with its own process, database and idempotency keys.

It makes one transfer for each idempotency key, however often it is asked, and writes down every call. For an order
whose name begins with "slow" it is silent for a time after it has paid.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import httpx
from psycopg import AsyncCursor
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from pyidem.demo.service import ProviderLost
from pyidem.httpx import AsyncIdempotentTransport, Retries

_SLOW: Final = "slow"
_SLOW_SECONDS: Final = 3

_TRANSFER = """
    with noted as (
        insert into call (idempotency_key) values (%(key)s)
    )
    insert into transfer (idempotency_key, order_no, amount) values (%(key)s, %(order)s, %(amount)s)
    on conflict (idempotency_key) do nothing
"""
_NAME = "select 'tr_' || id from transfer where idempotency_key = %(key)s"
_SILENCE = """
    select greatest(0, %(seconds)s - extract(epoch from clock_timestamp() - min(called_at)))::float8
    from call where idempotency_key = %(key)s
"""


class ProviderClient:
    """What the provider gives its customers to call it with.

    It is asked twice, under the same key, before it counts as lost.
    """

    def __init__(self, port: int, patience: float) -> None:
        retries = Retries(attempts=2, total_time=3 * patience, first_pause=0.1)
        transport = AsyncIdempotentTransport(httpx.AsyncHTTPTransport(), retries)
        self._http = httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=patience)

    async def __aenter__(self) -> Self:
        """Open connections as they are needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._http.aclose()

    async def transfer(self, order: str, amount: int, *, idempotency_key: str) -> str:
        """Pay an amount back to the customer of an order and return the transfer's name."""
        try:
            response = await self._http.post(
                "/transfers", json={"order": order, "amount": amount}, headers={"Idempotency-Key": idempotency_key}
            )
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise ProviderLost from error
        return str(response.json()["transfer"])


def make_app(*, dsn: str) -> Starlette:
    """Return the provider's application on its database."""
    pool = AsyncConnectionPool(dsn, min_size=1, max_size=8, kwargs={"autocommit": True}, open=False)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with pool:
            yield

    async def transfer(request: Request) -> JSONResponse:
        call: dict[str, Any] = {**await request.json(), "key": request.headers["Idempotency-Key"]}
        call["seconds"] = _SLOW_SECONDS if call["order"].startswith(_SLOW) else 0
        async with pool.connection() as connection:
            await connection.execute(_TRANSFER, call)
            (name,) = await _only(await connection.execute(_NAME, call))
            (silence,) = await _only(await connection.execute(_SILENCE, call))
        await asyncio.sleep(silence)
        return JSONResponse({"transfer": name}, 201)

    return Starlette(routes=[Route("/transfers", transfer, methods=["POST"])], lifespan=lifespan)


async def _only(cursor: AsyncCursor[Any]) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = await cursor.fetchone()
    assert row is not None
    return row

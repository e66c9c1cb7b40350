"""One worker process: serves `service.py`, with a death of its own for whoever brings one along."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool

from pyidem.demo.fate import App, FatefulBooks, FatefulProvider, fateful
from pyidem.demo.provider import ProviderClient
from pyidem.demo.service import create_app


def make_app(*, dsn: str, provider_port: int, patience: float) -> App:
    """Return the application of one worker. `patience` is how many seconds it waits for the provider."""
    pool = AsyncConnectionPool(dsn, min_size=1, max_size=8, open=False)

    provider = ProviderClient(provider_port, patience)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pool, provider:
            yield

    app = create_app(pool, FatefulProvider(provider), FatefulBooks())
    app.router.lifespan_context = lifespan
    return fateful(app)

"""What an application on pyidem has in its conftest.py."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.orm import sessionmaker

from pyidem import Idem
from pyidem.testing import AsyncClock, Clock, single_transaction, single_transaction_async

pytest_plugins = ["pyidem.testing"]


@pytest.fixture(scope="session")
def idem_dsn() -> str:
    """The test database."""
    return os.environ["APP_TEST_DSN"]


@pytest.fixture
def idem(idem_connection: psycopg.Connection) -> Idem[Any]:
    """The client on psycopg."""
    return Idem(idem_connection)


@pytest.fixture
def sqlalchemy_connection(idem_clock: Clock) -> Iterator[Connection]:
    """A connection of SQLAlchemy that is rolled back."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(os.environ["APP_TEST_DSN"]))
    with engine.connect() as connection:
        single_transaction(connection)
        idem_clock.on(connection)
        yield connection
        connection.rollback()
    engine.dispose()


@pytest.fixture
def sqlalchemy_idem(sqlalchemy_connection: Connection) -> Idem[Any]:
    """The client on SQLAlchemy."""
    return Idem(sessionmaker(sqlalchemy_connection, join_transaction_mode="create_savepoint"))


@pytest.fixture
async def async_connection(idem_testing: None) -> AsyncIterator[AsyncConnection]:  # noqa: ARG001 - it enables
    """An asynchronous connection that is rolled back."""
    engine = create_async_engine(os.environ["APP_TEST_URL"])
    async with engine.connect() as connection:
        await single_transaction_async(connection)
        yield connection
        await connection.rollback()
    await engine.dispose()


@pytest.fixture
async def async_clock(async_connection: AsyncConnection) -> AsyncIterator[AsyncClock]:
    """The clock that the asynchronous connection sees."""
    clock = AsyncClock()
    await clock.on(async_connection)
    yield clock
    await clock.reset()

"""Other packages for the same purpose, used as their own documentation recommends, around the same work.

Each stores its answer in Postgres. Where the work is not in the transaction of the key, as with most, it has a
transaction of its own on a pool of its own.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any

from psycopg.conninfo import conninfo_to_dict

WORK = "insert into orders (amount, note) values (1, 'benchmark')"
STORED = 20
Operation = Callable[[str], object]
AsyncOperation = Callable[[str], Awaitable[object]]


def url(dsn: str, scheme: str = "postgresql") -> str:
    """Write a connection string as a URL."""
    part = conninfo_to_dict(dsn)
    return f"{scheme}://{part['user']}:{part['password']}@{part['host']}:{part['port']}/{part['dbname']}"


def again(name: str) -> str:
    """Return one of a few names, which come again and again."""
    return f"again-{hash(name) % STORED}"


@asynccontextmanager
async def _idemkit(dsn: str, clients: int) -> AsyncIterator[AsyncOperation]:
    import asyncpg
    from idemkit import MethodConfig, PostgresBackend, idempotent
    from idemkit.backends.postgres import _schema_sql

    async with asyncpg.create_pool(url(dsn), min_size=clients, max_size=clients) as pool:
        with contextlib.suppress(asyncpg.UniqueViolationError):  # another process has made it
            await pool.execute(_schema_sql("idemkit_records"))
        # one connection more, on which it listens
        backend = PostgresBackend.from_url(url(dsn), min_size=clients, max_size=clients + 1)

        @idempotent(backend=backend, config=MethodConfig(key_fields=["key"], scope=lambda _: "client"))
        async def pay(*, key: str) -> dict[str, int]:  # noqa: ARG001
            await pool.execute(WORK)
            return {"id": 1234567, "amount": 1}

        async with backend:
            yield lambda name: pay(key=name)


@asynccontextmanager
async def idemkit(dsn: str, clients: int) -> AsyncIterator[AsyncOperation]:
    """The decorator for function calls of idemkit, on asyncpg."""
    async with _idemkit(dsn, clients) as pay:

        async def operation(name: str) -> None:
            await pay(name)

        yield operation


@asynccontextmanager
async def idemkit_replay(dsn: str, clients: int) -> AsyncIterator[AsyncOperation]:
    """The same, for keys that are done."""
    async with _idemkit(dsn, clients) as pay:

        async def operation(name: str) -> None:
            await pay(again(name))

        yield operation


@cache
def _justonce(dsn: str, clients: int) -> Callable[[str], object]:
    import justonce
    from justonce.stores import PostgresStore
    from psycopg_pool import ConnectionPool

    pool = ConnectionPool(dsn, min_size=clients, max_size=clients, open=True)
    engine = justonce.Idempotent(PostgresStore(url(dsn)))

    def pay(name: str) -> object:
        def work() -> dict[str, int]:
            with pool.connection() as connection:
                connection.execute(WORK)
            return {"id": 1234567, "amount": 1}

        return engine.run(name, work, payload={"amount": 1})

    return pay


@contextmanager
def justonce(dsn: str, clients: int) -> Iterator[Operation]:
    """The engine of justonce on its Postgres store, which connects for each call."""
    yield _justonce(dsn, clients)


@contextmanager
def justonce_replay(dsn: str, clients: int) -> Iterator[Operation]:
    """The same, for keys that are done."""
    pay = _justonce(dsn, clients)
    for number in range(STORED):
        with contextlib.suppress(Exception):  # another process is at it
            pay(f"again-{number}")
    yield lambda name: pay(again(name))


@cache
def _dbos(dsn: str, clients: int) -> Callable[[str], object]:
    from dbos import DBOS, SetWorkflowID, SQLAlchemyDatasource

    DBOS(
        config={
            "name": "bench",
            "system_database_url": url(dsn, "postgresql+psycopg"),
            "sys_db_pool_size": clients,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    source = SQLAlchemyDatasource.create(
        database_url=url(dsn, "postgresql+psycopg"), engine_kwargs={"pool_size": clients}
    )

    @source.transaction(isolation_level="READ COMMITTED")
    def insert() -> dict[str, int]:
        import sqlalchemy

        source.sql_session().execute(sqlalchemy.text(WORK))
        return {"id": 1234567, "amount": 1}

    @DBOS.workflow()
    def pay() -> dict[str, int]:
        result: dict[str, int] = insert()
        return result

    DBOS.launch()

    def operation(name: str) -> object:
        with SetWorkflowID(name):
            return pay()

    return operation


_dbos_operation: list[Any] = []


def _dbos_once(dsn: str) -> Callable[[str], object]:
    """There is one DBOS in a process, whatever the number of clients."""
    if not _dbos_operation:
        _dbos_operation.append(_dbos(dsn, 32))
    operation: Callable[[str], object] = _dbos_operation[0]
    return operation


@contextmanager
def dbos(dsn: str, clients: int) -> Iterator[Operation]:  # noqa: ARG001
    """A workflow of DBOS, named after the key, with one transaction of a datasource."""
    yield _dbos_once(dsn)


@contextmanager
def dbos_replay(dsn: str, clients: int) -> Iterator[Operation]:  # noqa: ARG001
    """The same, for keys that are done."""
    pay = _dbos_once(dsn)
    yield lambda name: pay(again(name))


@asynccontextmanager
async def _fastidempotent(dsn: str, clients: int) -> AsyncIterator[AsyncOperation]:
    import asyncpg
    from fastapi import Request
    from fastidempotent import IdempotencyConfig, idempotent
    from fastidempotent.backends.postgres import PostgresBackend

    backend = PostgresBackend(url(dsn, "postgresql+asyncpg"), pool_size=clients)
    with contextlib.suppress(Exception):  # another process has made the table
        await backend.init()
    async with asyncpg.create_pool(url(dsn), min_size=clients, max_size=clients) as pool:

        @idempotent(backend=backend, config=IdempotencyConfig())
        async def pay(request: Request) -> dict[str, int]:  # noqa: ARG001
            await pool.execute(WORK)
            return {"id": 1234567, "amount": 1}

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b'{"amount": 1}', "more_body": False}

        async def call(name: str) -> object:
            scope = {
                "type": "http", "method": "POST", "path": "/orders", "query_string": b"",
                "headers": [(b"idempotency-key", name.encode()), (b"content-type", b"application/json")],
            }  # fmt: skip
            return await pay(request=Request(scope, receive))

        yield call
    await backend.close()


@asynccontextmanager
async def fastidempotent(dsn: str, clients: int) -> AsyncIterator[AsyncOperation]:
    """The decorator for routes of fastidempotent, called with a request as FastAPI makes it."""
    async with _fastidempotent(dsn, clients) as pay:

        async def operation(name: str) -> None:
            await pay(name)

        yield operation

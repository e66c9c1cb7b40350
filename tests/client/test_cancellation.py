"""A task may be cancelled at any point: the answer is stored or the key is free, and no connection is spoilt."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

from pyidem import AsyncIdem
from tests.client.flavours import asyncpg_url
from tests.support.database import Database

STOP_AT_COMMIT = 4711
Count = Callable[[str], int]


@pytest.fixture
def holder(client_db: Database) -> psycopg.Connection:
    """A connection to hold a lock with; inside a transaction pg_stat_activity stands still."""
    return client_db.connect(autocommit=True)


@pytest.fixture(params=["pool", "sessionmaker", "asyncpg"])
async def idem(request: pytest.FixtureRequest, client_db: Database) -> AsyncIterator[AsyncIdem[Any]]:
    """A client whose source has one connection, so that a spoilt one is noticed."""
    async with AsyncExitStack() as cleanup:
        if request.param == "pool":
            pool = await cleanup.enter_async_context(
                AsyncConnectionPool(client_db.dsn, min_size=1, max_size=1, timeout=10, open=False)
            )
            yield AsyncIdem(pool)
        else:
            driver: dict[str, Any] = {"url": "postgresql+psycopg://", "connect_args": conninfo_to_dict(client_db.dsn)}
            if request.param == "asyncpg":
                driver = {"url": asyncpg_url(client_db.dsn)}
            engine = create_async_engine(**driver, pool_size=1, max_overflow=0, pool_timeout=10)
            cleanup.push_async_callback(engine.dispose)
            yield AsyncIdem(async_sessionmaker(engine))


async def execute(handle: Any, statement: str) -> None:
    """Run a statement on a connection or session."""
    await handle.execute(statement if isinstance(handle, psycopg.AsyncConnection) else text(statement))


async def buy(idem: AsyncIdem[Any], scope: str) -> None:
    """Insert an order under one key."""
    async with idem.atomic(scope, "k") as op:
        if op.started:
            await execute(op.connection, f"insert into orders (name) values ('{scope}')")
            op.complete(201)


async def waiting(observer: psycopg.Connection, what: str) -> None:
    """Return once a backend of the database waits for a lock in a statement like that."""
    async with asyncio.timeout(10):
        while not observer.execute(  # noqa: ASYNC110 - it is the server that is waited for
            "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
            " and query ilike %s",
            [what],
        ).fetchone():
            await asyncio.sleep(0.005)


async def cancelling_takes_effect(client_db: Database, observer: psycopg.Connection) -> None:
    """Return once a query that was cancelled later than the others has been stopped by the server."""
    async with await psycopg.AsyncConnection.connect(client_db.dsn) as connection:
        task = asyncio.create_task(connection.execute("select pg_advisory_lock(%s)", [STOP_AT_COMMIT]))
        await waiting(observer, "select pg_advisory_lock%")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def usable(idem: AsyncIdem[Any]) -> bool:
    """Tell whether the only connection still serves, several times over."""
    return [await idem.version() for _ in range(3)] == [await idem.version()] * 3


@pytest.mark.parametrize("cancellations", [1, 2])
async def test_cancelled_while_the_completion_commits_the_answer_is_stored(
    idem: AsyncIdem[Any],
    scope: str,
    observer: psycopg.Connection,
    holder: psycopg.Connection,
    orders: Count,
    *,
    client_db: Database,
    cancellations: int,
) -> None:
    with holder.transaction():
        holder.execute("select pg_advisory_xact_lock(%s)", [STOP_AT_COMMIT])
        task = asyncio.create_task(buy(idem, scope))
        await waiting(observer, "commit%")
        for _ in range(cancellations):
            task.cancel()
            await asyncio.sleep(0)
        await cancelling_takes_effect(client_db, observer)
        await waiting(observer, "commit%")
        assert task.done() is (cancellations > 1)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await usable(idem)
    assert (await idem.lookup(scope, "k")).outcome == "completed"
    assert orders(scope) == 1


async def test_cancelled_while_the_work_runs_the_key_is_free(
    idem: AsyncIdem[Any], scope: str, observer: psycopg.Connection, holder: psycopg.Connection, orders: Count
) -> None:
    async def work() -> None:
        async with idem.atomic(scope, "k") as op:
            await execute(op.connection, f"insert into orders (name) values ('{scope}')")
            op.complete(201)
            await execute(op.connection, f"select pg_advisory_xact_lock({STOP_AT_COMMIT})")

    with holder.transaction():
        holder.execute("select pg_advisory_xact_lock(%s)", [STOP_AT_COMMIT])
        task = asyncio.create_task(work())
        await waiting(observer, "select pg_advisory%")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await usable(idem)
    assert (await idem.lookup(scope, "k")).outcome == "absent"
    await buy(idem, scope)
    assert orders(scope) == 1


async def test_cancelled_while_it_reserves_the_key_is_free(
    idem: AsyncIdem[Any], scope: str, observer: psycopg.Connection, holder: psycopg.Connection, orders: Count
) -> None:
    with holder.transaction():
        holder.execute("lock table idem_private.reservation")
        task = asyncio.create_task(buy(idem, scope))
        await waiting(observer, "%idem.reserve%")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await usable(idem)
    await buy(idem, scope)
    assert orders(scope) == 1


async def test_a_timeout_around_a_block_is_a_timeout(idem: AsyncIdem[Any], scope: str) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit, idem.leased(scope, "k"):
            limit.reschedule(asyncio.get_running_loop().time())
            await asyncio.Event().wait()
    assert (await idem.lookup(scope, "k")).outcome == "lapsed"


async def test_cancelled_between_reserve_and_answer_the_outcome_is_said_to_be_unknown(
    idem: AsyncIdem[Any], scope: str
) -> None:
    entered = asyncio.Event()

    async def work() -> None:
        async with idem.leased(scope, "k"):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await idem.lookup(scope, "k")).outcome == "lapsed"
    assert await usable(idem)


async def test_cancelled_while_the_leased_answer_commits_it_is_stored(
    idem: AsyncIdem[Any],
    scope: str,
    observer: psycopg.Connection,
    holder: psycopg.Connection,
    orders: Count,
    *,
    client_db: Database,
) -> None:
    async def work() -> None:
        async with idem.leased(scope, "k") as op, op.transaction() as connection:
            await execute(connection, f"insert into orders (name) values ('{scope}')")
            op.complete(201)

    with holder.transaction():
        holder.execute("select pg_advisory_xact_lock(%s)", [STOP_AT_COMMIT])
        task = asyncio.create_task(work())
        await waiting(observer, "commit%")
        task.cancel()
        await cancelling_takes_effect(client_db, observer)
        await waiting(observer, "commit%")
        assert not task.done()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await idem.lookup(scope, "k")).outcome == "completed"
    assert orders(scope) == 1
    assert await usable(idem)


async def test_cancelled_while_a_handler_runs_the_message_is_not_marked(
    idem: AsyncIdem[Any], scope: str, observer: psycopg.Connection, holder: psycopg.Connection, orders: Count
) -> None:
    @idem.consumer(scope, key=str)
    async def handle(connection: Any, _: str) -> None:
        await execute(connection, f"insert into orders (name) values ('{scope}')")
        await execute(connection, f"select pg_advisory_xact_lock({STOP_AT_COMMIT})")

    with holder.transaction():
        holder.execute("select pg_advisory_xact_lock(%s)", [STOP_AT_COMMIT])
        task = asyncio.create_task(handle("m1"))
        await waiting(observer, "select pg_advisory%")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await usable(idem)
    assert orders(scope) == 0
    assert (await handle("m1")).ran
    assert orders(scope) == 1


async def test_cancelled_while_the_message_commits_it_is_marked_and_handled(
    idem: AsyncIdem[Any],
    scope: str,
    observer: psycopg.Connection,
    holder: psycopg.Connection,
    orders: Count,
    *,
    client_db: Database,
) -> None:
    @idem.consumer(scope, key=str)
    async def handle(connection: Any, _: str) -> None:
        await execute(connection, f"insert into orders (name) values ('{scope}')")

    with holder.transaction():
        holder.execute("select pg_advisory_xact_lock(%s)", [STOP_AT_COMMIT])
        task = asyncio.create_task(handle("m1"))
        await waiting(observer, "commit%")
        task.cancel()
        await cancelling_takes_effect(client_db, observer)
        await waiting(observer, "commit%")
        assert not task.done()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await usable(idem)
    assert not (await handle("m1")).ran
    assert orders(scope) == 1


@pytest.mark.parametrize("mode", ["atomic", "leased"])
async def test_a_scope_of_anyio_which_cancels_again_and_again_waits_for_the_end_of_a_block(
    idem: AsyncIdem[Any],
    scope: str,
    observer: psycopg.Connection,
    holder: psycopg.Connection,
    orders: Count,
    *,
    client_db: Database,
    mode: str,
) -> None:
    limit = anyio.CancelScope()

    async def work() -> None:
        with limit:
            if mode == "atomic":
                await buy(idem, scope)
            else:
                async with idem.leased(scope, "k") as op, op.transaction() as connection:
                    await execute(connection, f"insert into orders (name) values ('{scope}')")
                    op.complete(201)

    with holder.transaction():
        holder.execute("select pg_advisory_xact_lock(%s)", [STOP_AT_COMMIT])
        task = asyncio.create_task(work())
        await waiting(observer, "commit%")
        limit.cancel()
        await cancelling_takes_effect(client_db, observer)
        await waiting(observer, "commit%")
        assert not task.done()
    await task
    assert limit.cancelled_caught
    assert (await idem.lookup(scope, "k")).outcome == "completed"
    assert orders(scope) == 1
    assert await usable(idem)


async def reserved_unheard(idem: AsyncIdem[Any], scope: str, observer: psycopg.Connection, attempt: int) -> None:
    """Cancel a leased block when its reservation is committed and it has not heard of that yet."""

    async def work() -> None:
        async with idem.leased(scope, "k", policy=scope):
            pytest.fail("the work has begun")

    task = asyncio.create_task(work())
    look = "select 1 from idem.lookup(%s, 'k') as l where l.outcome = 'in_progress' and l.attempt = %s"
    while not observer.execute(look, [scope, attempt]).fetchone():  # noqa: ASYNC110 - the task goes on by one step
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelled_when_a_lease_is_reserved_and_nothing_has_begun_the_key_is_free(
    idem: AsyncIdem[Any], scope: str, observer: psycopg.Connection
) -> None:
    observer.execute("insert into idem.policies (name) values (%s)", [scope])
    await reserved_unheard(idem, scope, observer, attempt=1)
    assert (await idem.lookup(scope, "k")).outcome == "absent"
    assert await usable(idem)


async def test_cancelled_when_it_has_taken_over_what_the_last_attempt_did_is_still_unknown(
    idem: AsyncIdem[Any], scope: str, observer: psycopg.Connection
) -> None:
    observer.execute("insert into idem.policies (name, on_lapse) values (%s, 'retry')", [scope])
    async with idem.leased(scope, "k", policy=scope):
        pass
    await reserved_unheard(idem, scope, observer, attempt=2)
    found = await idem.lookup(scope, "k")
    assert (found.outcome, found.attempt) == ("lapsed", 2)
    assert await usable(idem)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("mode", ["atomic", "leased"])
def test_what_ends_the_program_goes_through_the_callers_code_first(
    client_db: Database, scope: str, mode: str, error: BaseException
) -> None:
    seen: list[BaseException] = []

    async def main() -> None:
        async with AsyncConnectionPool(client_db.dsn, min_size=1, open=False) as pool:
            try:
                async with getattr(AsyncIdem(pool), mode)(scope, "k"):
                    raise error  # noqa: TRY301 - as the block's own statement
            except BaseException as raised:
                seen.append(raised)
                raise

    with pytest.raises(type(error)) as ended:
        asyncio.run(main())
    assert seen == [error]
    assert ended.value is error

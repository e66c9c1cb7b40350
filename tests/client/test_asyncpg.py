"""What is particular to asyncpg below SQLAlchemy; all else is tested with the other sources."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import NullPool, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from pyidem import AsyncIdem, KeyInvalid, LostReservation, NotCompleted, WrongMode
from tests.client.flavours import asyncpg_url
from tests.support.database import Database


@pytest.fixture
async def engine(client_db: Database) -> AsyncIterator[AsyncEngine]:
    """An engine with one connection, so that a spoilt one is noticed."""
    engine = create_async_engine(asyncpg_url(client_db.dsn), pool_size=1, max_overflow=0, pool_timeout=10)
    yield engine
    await engine.dispose()


async def test_values_come_and_go_as_they_do_on_psycopg(engine: AsyncEngine, scope: str) -> None:
    idem = AsyncIdem(engine)
    async with idem.leased(scope, "k", state={"a": [1, None, "\u00e9"]}, lease=timedelta(minutes=3)) as op:
        reservation = op.reservation
        assert isinstance(reservation.token, UUID)
        assert isinstance(op.downstream_key(), UUID)
        assert op.state == {"a": [1, None, "\u00e9"]}
        assert reservation.lease_until - reservation.created_at == timedelta(minutes=3)
        assert reservation.created_at.tzinfo is not None
        op.complete(201, b"\x00\xff", [("x-a", "1"), ("x-a", "2")])
    found = await idem.lookup(scope, "k")
    assert (found.body, found.headers) == (b"\x00\xff", [["x-a", "1"], ["x-a", "2"]])
    async with idem.leased(scope, "other", state="text") as op:
        assert op.state == "text"
        op.complete()


async def test_an_encoding_of_json_of_the_applications_own_does_not_disturb(engine: AsyncEngine, scope: str) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def set_codec(connection: Any, _: Any) -> None:
        connection.run_async(
            lambda driver: driver.set_type_codec(
                "jsonb", encoder=lambda _: "7", decoder=lambda _: "mine", schema="pg_catalog"
            )
        )

    async with AsyncIdem(engine).leased(scope, "k", state={"a": 1}) as op:
        assert op.state == {"a": 1}
        op.complete(201, {"id": 1})
    assert op.response.headers == (("content-type", "application/json"),)


async def test_errors_have_what_the_database_says(engine: AsyncEngine, scope: str) -> None:
    idem = AsyncIdem(engine)
    with pytest.raises(KeyInvalid) as invalid:
        async with idem.atomic(scope, ""):
            pytest.fail("the block was entered")
    assert invalid.value.detail["argument"] == "key"
    assert invalid.value.hint is not None
    assert str(invalid.value) == "the key is empty"
    await idem.reserve(scope, "k", mode="leased")
    with pytest.raises(LostReservation) as lost:
        await idem.extend(scope, "k", uuid4())
    assert lost.value.detail["code"] == "not_the_owner"


async def test_an_error_at_commit_is_sqlalchemys_own_and_leaves_the_pool_sane(engine: AsyncEngine, scope: str) -> None:
    idem = AsyncIdem(async_sessionmaker(engine))
    for _ in range(3):
        with pytest.raises(IntegrityError):
            async with idem.atomic(scope, "k") as op:
                await op.session.execute(text("insert into invoices values (-1)"))
                op.complete(201)
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert (await idem.lookup(scope, "k")).outcome == "absent"


async def test_hooks_of_a_session_run_before_the_completion(engine: AsyncEngine, scope: str) -> None:
    class Hooked(AsyncSession):
        """A session whose commit writes an outbox."""

    factory = async_sessionmaker(engine, class_=Hooked)
    seen: list[str] = []

    @event.listens_for(engine.sync_engine, "before_cursor_execute")
    def see(_: Any, __: Any, statement: str, *___: Any) -> None:
        seen.extend(word for word in ("outbox", "idem.reserve", "idem.complete") if word in statement)

    async with AsyncIdem(factory).atomic(scope, "k") as op:

        @event.listens_for(op.session.sync_session, "before_commit")
        def write_outbox(session: Any) -> None:
            session.execute(text("insert into orders (name) values (:name) -- outbox"), {"name": scope})

        op.complete(201)
    assert seen == ["idem.reserve", "outbox", "idem.complete"]


async def test_after_a_rollback_inside_the_block_nothing_can_be_stored(engine: AsyncEngine, scope: str) -> None:
    idem = AsyncIdem(async_sessionmaker(engine))
    with pytest.raises(NotCompleted, match="rolled back inside"):
        async with idem.atomic(scope, "k") as op:
            await op.session.rollback()
            op.complete(201)
    assert (await idem.lookup(scope, "k")).outcome == "absent"


async def test_an_engine_in_autocommit_mode_is_refused(client_db: Database, scope: str) -> None:
    engine = create_async_engine(asyncpg_url(client_db.dsn), isolation_level="AUTOCOMMIT")
    idem = AsyncIdem(engine)
    for block in (idem.atomic, idem.leased):
        with pytest.raises(WrongMode, match="autocommit"):
            async with block(scope, "k"):
                pytest.fail("the block was entered")
    async with engine.connect() as connection:
        with pytest.raises(WrongMode, match="autocommit"):
            await idem.once(scope, "m1", on=connection)
    await engine.dispose()


async def test_leased_calls_are_read_committed_whatever_the_default(client_db: Database, scope: str) -> None:
    engine = create_async_engine(asyncpg_url(client_db.dsn), isolation_level="SERIALIZABLE")
    async with AsyncIdem(engine).leased(scope, "k") as op, op.transaction() as connection:
        assert await connection.scalar(text("show transaction_isolation")) == "read committed"
        op.complete(204)
    await engine.dispose()


async def test_a_session_bound_to_a_connection_in_a_transaction_is_for_test_suites(
    engine: AsyncEngine, scope: str, client_db: Database
) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("select set_config('idem.single_transaction', 'on', true)"))
        idem = AsyncIdem(async_sessionmaker(connection, join_transaction_mode="create_savepoint"))
        insert = text("insert into orders (name) values (:name)")
        async with idem.atomic(scope, "a") as op:
            await op.session.execute(insert, {"name": scope})
            op.complete(201)
        async with idem.leased(scope, "l") as leased, leased.transaction() as session:
            await session.execute(insert, {"name": scope})
            leased.complete(201)
        assert leased.response.status == 201
        with pytest.raises(ZeroDivisionError):
            async with idem.atomic(scope, "b") as op:
                await op.session.execute(insert, {"name": scope})
                raise ZeroDivisionError
        found = text("select count(*) from orders where name = :name")
        assert await connection.scalar(found, {"name": scope}) == 2
        await connection.rollback()
    with psycopg.connect(client_db.dsn) as observer:
        assert observer.execute("select 1 from orders where name = %s", [scope]).fetchone() is None


@pytest.mark.parametrize("mode", ["atomic", "leased"])
async def test_behind_pgbouncer_in_transaction_mode_nothing_fails(
    pooler: str, scope: str, observer: psycopg.Connection, mode: str
) -> None:
    server = conninfo_to_dict(pooler)
    engine = create_async_engine(
        URL.create("postgresql+asyncpg", "anybody", "", "127.0.0.1", int(server["port"]), "app"),
        poolclass=NullPool,
        connect_args={
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: f"__asyncpg_{uuid4()}__",
        },
    )
    idem = AsyncIdem(engine)

    async def work(number: int) -> None:
        if mode == "atomic":
            async with idem.atomic(scope, f"k{number}") as op:
                op.complete(201)
        else:
            async with idem.leased(scope, f"k{number}") as leased, leased.transaction():
                leased.complete(201)

    for batch in range(10):
        await asyncio.gather(*(work(8 * batch + number) for number in range(8)))
    await engine.dispose()
    row = observer.execute(
        "select count(*) from idem.keys where scope = %s and completed_at is not null", [scope]
    ).fetchone()
    assert row == (80,)

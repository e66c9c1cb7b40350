"""SQLAlchemy's own state stays right, and what applications hook into it keeps working."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, Engine, ForeignKey, create_engine, event, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from pyidem import AsyncIdem, AtomicOp, Idem, NotCompleted
from tests.support.database import Database


class Base(DeclarativeBase):
    """The business tables."""


class Order(Base):
    """One order."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Customer(Base):
    """One customer."""

    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)


class Invoice(Base):
    """An invoice, whose customer is looked for at COMMIT."""

    __tablename__ = "invoices"
    customer: Mapped[int] = mapped_column(ForeignKey("customers.id"), primary_key=True)


@pytest.fixture
def engine(client_db: Database) -> Iterator[Engine]:
    """An engine with one connection, so that a spoilt one is noticed."""
    engine = create_engine(
        "postgresql+psycopg://", connect_args=conninfo_to_dict(client_db.dsn), pool_size=1, max_overflow=0
    )
    yield engine
    engine.dispose()


def test_pending_objects_are_flushed_and_committed_with_the_answer(engine: Engine, scope: str) -> None:
    with Idem(sessionmaker(engine)).atomic(scope, "k") as op:
        op.session.add(Order(name=scope))
        op.complete(201)
    with Session(engine) as session:
        assert session.scalars(select(Order.name).where(Order.name == scope)).all() == [scope]


def test_an_error_of_the_flush_leaves_session_and_pool_sane(engine: Engine, scope: str) -> None:
    idem = Idem(sessionmaker(engine))
    for _ in range(3):
        with pytest.raises(IntegrityError) as raised, idem.atomic(scope, "k") as op:
            op.session.add(Order(name=None))
            op.complete(201)
        assert isinstance(raised.value.orig, psycopg.errors.NotNullViolation)
        assert not op.reservation.status
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert idem.lookup(scope, "k").outcome == "absent"


def test_an_error_at_commit_is_sqlalchemys_own_and_leaves_session_and_pool_sane(engine: Engine, scope: str) -> None:
    idem = Idem(sessionmaker(engine))
    for _ in range(3):
        with pytest.raises(IntegrityError) as raised, idem.atomic(scope, "k") as op:
            session = op.session
            session.add(Invoice(customer=-1))
            op.complete(201)
        assert isinstance(raised.value.orig, psycopg.errors.ForeignKeyViolation)
        assert not session.in_transaction()
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        assert session.scalar(text("select 1")) == 1
        session.close()
    assert idem.lookup(scope, "k").outcome == "absent"


def test_a_hook_that_writes_before_commit_is_part_of_the_same_transaction(engine: Engine, scope: str) -> None:
    factory = sessionmaker(engine)

    @event.listens_for(factory, "before_commit")
    def write_outbox(session: Session) -> None:
        session.execute(text("insert into orders (name) values (:name)"), {"name": scope + "-outbox"})

    idem = Idem(factory)
    with pytest.raises(IntegrityError), idem.atomic(scope, "k") as op:
        op.session.add(Invoice(customer=-1))
        op.complete(201)
    with idem.atomic(scope, "k") as op:
        op.complete(201)
    with engine.connect() as connection:
        found = connection.scalar(text("select count(*) from orders where name = :n"), {"n": scope + "-outbox"})
    assert found == 1


def test_a_hook_that_speaks_at_begin_does_not_disturb(engine: Engine, scope: str) -> None:
    factory = sessionmaker(engine)

    @event.listens_for(factory, "after_begin")
    def name_tenant(_: Any, __: Any, connection: Connection) -> None:
        connection.execute(text("select set_config('app.tenant', 'acme', true)"))

    idem = Idem(factory)
    for _ in range(2):
        with idem.atomic(scope, "k") as op:
            assert op.session.scalar(text("select current_setting('app.tenant')")) == "acme"
            if op.started:
                op.session.add(Order(name=scope))
                op.complete(201)
        assert op.response.status == 201
    with idem.leased(scope, "l") as leased, leased.transaction() as session:
        assert session.scalar(text("select current_setting('app.tenant')")) == "acme"
        leased.complete(201)
    assert leased.response.status == 201


def test_an_error_contained_in_a_savepoint_does_not_end_the_block(engine: Engine, scope: str) -> None:
    with Idem(sessionmaker(engine)).atomic(scope, "k") as op:
        with pytest.raises(IntegrityError), op.session.begin_nested():
            op.session.add(Order(name=None))
            op.session.flush()
        op.session.add(Order(name=scope))
        op.complete(409)
    assert op.response.status == 409


def test_after_a_rollback_inside_the_block_nothing_can_be_stored(engine: Engine, scope: str) -> None:
    idem = Idem(sessionmaker(engine))
    with pytest.raises(NotCompleted, match="rolled back inside"), idem.atomic(scope, "k") as op:
        op.session.rollback()
        op.session.add(Order(name=scope))
        op.complete(201)
    assert idem.lookup(scope, "k").outcome == "absent"
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_a_lost_connection_is_replaced(engine: Engine, scope: str, observer: psycopg.Connection) -> None:
    idem = Idem(sessionmaker(engine))
    with pytest.raises(Exception, match=r"terminat|closed|lost"), idem.atomic(scope, "k") as op:
        pid = op.session.scalar(text("select pg_backend_pid()"))
        observer.execute("select pg_terminate_backend(%s, 10000)", [pid])
        op.complete(201)
    assert idem.lookup(scope, "k").outcome == "absent"


def test_an_engine_in_autocommit_mode_serves_blocks_as_well(client_db: Database, scope: str) -> None:
    engine = create_engine(
        "postgresql+psycopg://", connect_args=conninfo_to_dict(client_db.dsn), isolation_level="AUTOCOMMIT"
    )
    idem = Idem(engine)
    with pytest.raises(NotCompleted), idem.atomic(scope, "k") as op:
        op.connection.execute(text("insert into orders (name) values (:name)"), {"name": scope})
    with engine.connect() as connection:
        assert connection.scalar(text("select count(*) from orders where name = :name"), {"name": scope}) == 0
    with idem.atomic(scope, "k") as op:
        op.complete(201)
    engine.dispose()
    assert op.response.status == 201


def test_a_session_bound_to_a_connection_in_a_transaction_is_for_test_suites(engine: Engine, scope: str) -> None:
    with engine.connect() as connection:
        connection.execute(text("select set_config('idem.single_transaction', 'on', true)"))
        idem = Idem(sessionmaker(connection, join_transaction_mode="create_savepoint"))
        for expected in ("started", "replay"):
            with idem.atomic(scope, "a") as op:
                assert op.outcome == expected
                if op.started:
                    op.session.add(Order(name=scope))
                    op.complete(201)
        with idem.leased(scope, "l") as leased, leased.transaction() as session:
            session.add(Order(name=scope))
            leased.complete(201)
        assert leased.response.status == 201
        with pytest.raises(ZeroDivisionError), idem.atomic(scope, "b") as op:
            op.session.add(Order(name=scope))
            raise ZeroDivisionError
        assert connection.scalar(text("select count(*) from orders where name = :name"), {"name": scope}) == 2
        connection.rollback()
    with Session(engine) as session:
        assert session.scalars(select(Order).where(Order.name == scope)).all() == []


async def test_an_async_session_bound_to_a_connection_in_a_transaction_is_for_test_suites(
    client_db: Database, scope: str
) -> None:
    engine = create_async_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(client_db.dsn))
    async with engine.connect() as connection:
        await connection.execute(text("select set_config('idem.single_transaction', 'on', true)"))
        idem = AsyncIdem(async_sessionmaker(connection, join_transaction_mode="create_savepoint"))
        for expected in ("started", "replay"):
            async with idem.atomic(scope, "a") as op:
                assert op.outcome == expected
                if op.started:
                    op.session.add(Order(name=scope))
                    op.complete(201)
        async with idem.leased(scope, "l") as leased, leased.transaction() as session:
            session.add(Order(name=scope))
            leased.complete(201)
        assert leased.response.status == 201
        await connection.rollback()
    await engine.dispose()
    with psycopg.connect(client_db.dsn) as observer:
        assert observer.execute("select 1 from orders where name = %s", [scope]).fetchone() is None


def test_the_types_of_the_handles_are_known(engine: Engine, scope: str) -> None:
    class Tenant(Session):
        """A session of the application's own kind."""

    with Idem(sessionmaker(engine, class_=Tenant)).atomic(scope, "k") as op:
        typed: AtomicOp[Tenant] = op
        assert isinstance(typed.session, Tenant)
        op.complete()

"""What the clients accept, what they refuse, and that they are two faces of one thing."""

import inspect
import subprocess
import sys
from typing import Any, get_type_hints
from uuid import uuid4

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

import pyidem
from pyidem import AsyncAtomicOp, AsyncIdem, AsyncLeasedOp, AtomicOp, Idem, LeasedOp, _calls
from pyidem.testing import AsyncClock, Clock
from tests.client.flavours import OpenClient

PAIRS = [(Idem, AsyncIdem), (AtomicOp, AsyncAtomicOp), (LeasedOp, AsyncLeasedOp), (Clock, AsyncClock)]
URL = "postgresql+psycopg://nobody@nowhere.invalid/"


@pytest.mark.parametrize(("sync", "asynchronous"), PAIRS)
def test_both_flavours_have_the_same_methods_with_the_same_arguments(sync: Any, asynchronous: Any) -> None:
    def public(kind: Any) -> dict[str, list[tuple[str, Any, Any]]]:
        return {
            name: [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") or name == "__init__"
        }

    assert public(sync) == public(asynchronous)


@pytest.mark.parametrize(("sync", "asynchronous"), PAIRS)
def test_both_flavours_take_the_same_types(sync: Any, asynchronous: Any) -> None:
    for name, method in inspect.getmembers(sync, inspect.isfunction):
        if name.startswith("_") or name in {"atomic", "leased"}:
            continue
        ours, theirs = get_type_hints(method), get_type_hints(getattr(asynchronous, name))
        ours.pop("return"), theirs.pop("return")
        assert ours == theirs, name


def refused() -> list[tuple[Any, Any]]:
    """Return each client with what it cannot use."""
    engine, async_engine = create_engine(URL), create_async_engine(URL)
    other = create_engine("sqlite://")
    pool = ConnectionPool("", open=False)
    async_pool = AsyncConnectionPool("", open=False)
    both = ["postgresql://localhost/app", None, object(), 7, other, sessionmaker, psycopg.AsyncConnection.connect]
    return [
        *((Idem, value) for value in [*both, async_engine, async_sessionmaker(async_engine), async_pool]),
        *((AsyncIdem, value) for value in [*both, engine, sessionmaker(engine), pool, psycopg.connect]),
    ]


@pytest.mark.parametrize("case", range(len(refused())))
def test_what_is_no_source_is_refused_with_the_list_of_what_is(case: int) -> None:
    client, value = refused()[case]
    with pytest.raises(TypeError, match=r"psycopg|sqlite"):
        client(value)


def test_a_refusal_names_what_was_given_and_what_is_accepted() -> None:
    with pytest.raises(TypeError) as raised:
        Idem("postgresql://localhost/app")  # type: ignore[call-overload]
    assert str(raised.value) == (
        "Idem takes one of psycopg.Connection, psycopg_pool.ConnectionPool, sqlalchemy.Engine, "
        "sqlalchemy.orm.sessionmaker, a function that returns a DB-API connection, "
        "with SQLAlchemy on psycopg or asyncpg; not builtins.str"
    )


def test_an_engine_on_another_driver_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"not on postgresql\+psycopg2"):
        Idem(create_engine("postgresql+psycopg2://nobody@nowhere.invalid/"))


@pytest.mark.parametrize("name", ["sync-pool", "async-pool"])
def test_on_takes_a_connection_of_the_right_flavour_only(open_client: OpenClient, scope: str, name: str) -> None:
    client = open_client(name)
    for wrong in (
        client.origin,
        "connection",
        open_client("sync-pool" if client.asynchronous else "async-pool").lend(),
    ):
        with pytest.raises(TypeError, match=r"on= takes one of psycopg\."):
            client.idem.atomic(scope, "k", on=wrong, commit=True)
        with pytest.raises(TypeError, match=r"on= takes one of psycopg\."):
            client.idem.leased(scope, "k", on=wrong)


def test_importing_the_client_needs_psycopg_alone() -> None:
    others = {"sqlalchemy", "psycopg_pool", "alembic", "greenlet", "typer", "rich", "django", "asyncpg", "pytest"}
    script = f"import sys, pyidem; print(sorted({others} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_every_public_name_is_there_and_documented() -> None:
    for name in pyidem.__all__:
        assert inspect.getdoc(getattr(pyidem, name)), name


def test_a_call_does_not_show_its_parameters() -> None:
    call = _calls.complete("s", "k", uuid4(), body=b"secret")
    assert "secret" not in repr(call)
    assert "idem.complete" in repr(call)

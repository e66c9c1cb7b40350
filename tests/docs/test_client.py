"""The examples of the Python client's page do what the page says."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.engine import URL

import pyidem
from tests.docs.blocks import CLIENT, rows, sections
from tests.docs.examples import count, defined_by
from tests.support.database import Database


@pytest.fixture
def client(shop: Database) -> Iterator[dict[str, Any]]:
    """The names that the page's blocks define."""
    server = shop.cluster
    url = URL.create("postgresql+psycopg", "app", server.password, server.host, server.port, shop.name)
    names = defined_by(CLIENT, shop, url=url)
    with names["pool"]:
        yield names


def test_an_atomic_block_runs_once(client: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    first = client["create_order"]("client:1", key, 100)

    assert first.status == 201
    assert client["create_order"]("client:1", key, 100) == first
    assert client["look"]("client:1", key) == "completed"
    assert count(shop, "orders") == 1


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_joined_block_is_final_when_the_caller_commits(end: str, client: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    with client["pool"].connection() as connection:
        assert client["pay_order"](connection, "client:1", key, 100) == "started"
        assert client["look"]("client:1", key) == "absent"
        getattr(connection, end)()

    assert client["look"]("client:1", key) == {"commit": "completed", "rollback": "absent"}[end]
    assert count(shop, "orders") == {"commit": 1, "rollback": 0}[end]


def test_a_leased_block_runs_once(client: dict[str, Any], shop: Database) -> None:
    key = str(uuid4())

    first = client["refund"]("client:1", key, "ch_1")

    assert client["refund"]("client:1", key, "ch_1") == first
    assert client["provider"].calls == count(shop, "refunds") == 1


def test_an_asynchronous_block_runs_once(client: dict[str, Any], shop: Database) -> None:
    async def twice() -> list[Any]:
        key = str(uuid4())
        answers = [await client["create_order_async"]("client:1", key, 100) for _ in range(2)]
        await client["engine"].dispose()
        return answers

    first, second = asyncio.run(twice())

    assert first == second
    assert count(shop, "orders") == 1


def test_every_error_is_listed_with_its_sqlstate_and_status() -> None:
    listed = {row[0].strip("`"): (row[1].strip("`"), row[2]) for row in rows(sections(CLIENT)["Errors"])}
    errors = {
        name: error
        for name in pyidem.__all__
        if isinstance(error := getattr(pyidem, name), type) and issubclass(error, pyidem.IdempotencyError)
    }
    del errors["IdempotencyError"]

    assert listed == {name: (error.sqlstate, str(error.status or "")) for name, error in errors.items()}

"""The refunds API answers what it cannot do in a form that its clients understand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from pyidem.demo import schema
from pyidem.demo.service import Books, ProviderLost, create_app
from tests.support.database import Database

REFUND = {"order": "A-17", "amount": 500}


class Provider:
    """A provider that honours keys, and can fall silent after the work."""

    def __init__(self) -> None:
        self.made: dict[str, str] = {}
        self.silent = False

    async def transfer(self, order: str, amount: int, *, idempotency_key: str) -> str:
        name = self.made.setdefault(idempotency_key, f"tr_{order}_{amount}_{len(self.made)}")
        if self.silent:
            raise ProviderLost
        return name


class Api:
    """The API without a network."""

    def __init__(self, http: httpx.AsyncClient, provider: Provider, shop: psycopg.Connection[Any]) -> None:
        self.http = http
        self.provider = provider
        self.shop = shop

    async def post(self, method: str = "credit", key: str | None = "k", token: str = "north", **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} | ({} if key is None else {"Idempotency-Key": key})
        return await self.http.post(f"/refunds/{method}", headers=headers, json={**REFUND, **more})

    async def ask(self, amount: int) -> Any:
        headers = {"Authorization": "Bearer north", "Idempotency-Key": "k"}
        return await self.http.post("/quotes", headers=headers, json={"amount": amount})

    def count(self) -> int:
        row = self.shop.execute("select count(*) from refund").fetchone()
        assert row is not None
        return int(row[0])


@asynccontextmanager
async def open_api(db: Database, *, later: str = "0") -> AsyncIterator[Api]:
    """Yield the API, on a clock that may be ahead."""
    options = {"options": f"-c idem.clock_offset={later}"}
    with psycopg.connect(db.dsn, autocommit=True) as shop:
        async with AsyncConnectionPool(db.dsn, min_size=1, max_size=4, kwargs=options, open=False) as pool:
            provider = Provider()
            transport = httpx.ASGITransport(create_app(pool, provider, Books()))
            async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as http:
                yield Api(http, provider, shop)


@pytest.fixture
async def api(testing_db: Database) -> AsyncIterator[Api]:
    with psycopg.connect(testing_db.dsn) as shop:
        shop.execute(schema.SHOP)
    async with open_api(testing_db) as api:
        yield api


@pytest.mark.parametrize("method", ["credit", "card", "bank"])
async def test_a_refund_is_made_once_and_answered_alike(method: str, api: Api) -> None:
    first, second = [await api.post(method) for _ in range(2)]

    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert first.headers["Location"] == second.headers["Location"] == f"/refunds/{first.json()['id']}"
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert api.count() == 1
    assert len(api.provider.made) == (method != "credit")


async def test_a_refund_can_be_looked_up(api: Api) -> None:
    made = await api.post("card")

    found = await api.http.get(made.headers["Location"], headers={"Authorization": "Bearer north"})

    assert found.json() == made.json() == {**REFUND, "method": "card", "id": 1, "transfer": "tr_A-17_500_0"}


async def test_two_clients_with_the_same_key_do_not_meet(api: Api) -> None:
    answers = [await api.post(token=token) for token in ("north", "south")]

    assert [answer.json()["id"] for answer in answers] == [1, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 0},
        {"amount": 1.5},
        {"amount": True},
        {"amount": "1"},
        {"amount": 10_000_001},
        {"order": 1},
        {"order": ""},
        {"order": "A 17"},
        {"order": "A-17\n"},
        {"more": 1},
    ],
)
async def test_what_is_no_refund_is_refused_before_any_key_is_reserved(wrong: dict[str, Any], api: Api) -> None:
    refused = await api.post(**wrong)

    assert refused.status_code == 422
    assert (await api.post()).status_code == 201


@pytest.mark.parametrize("authorization", [{}, {"Authorization": "Bearer nobody"}, {"Authorization": "Basic north"}])
async def test_whoever_is_not_known_is_refused(authorization: dict[str, str], api: Api) -> None:
    refused = await api.http.post("/refunds/credit", headers={**authorization, "Idempotency-Key": "k"}, json=REFUND)

    assert refused.status_code == 401
    assert api.count() == 0


async def test_another_refund_under_the_same_key_is_a_422_that_names_what_differs(api: Api) -> None:
    await api.post()
    refused = await api.post(amount=900)

    assert refused.status_code == 422
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["code"] == "idempotency_key_reused"
    assert refused.json()["mismatched"] == ["/amount"]


@pytest.mark.parametrize(
    ("key", "code"), [(None, "idempotency_key_missing"), ("no key", "idempotency_key_invalid")], ids=["none", "wrong"]
)
async def test_without_a_proper_key_it_is_a_400(key: str | None, code: str, api: Api) -> None:
    refused = await api.post(key=key)

    assert refused.status_code == 400
    assert refused.json()["code"] == code
    assert api.count() == 0


async def test_a_silent_provider_is_a_503_and_the_next_attempt_at_a_card_goes_on(api: Api) -> None:
    api.provider.silent = True
    silent = await api.post("card")
    api.provider.silent = False
    answer = await api.post("card")

    assert (silent.status_code, silent.headers["Retry-After"]) == (503, "1")
    assert answer.status_code == 201
    assert len(api.provider.made) == api.count() == 1


async def test_a_bank_transfer_whose_outcome_is_unknown_waits_to_be_found_out(api: Api) -> None:
    api.provider.silent = True
    await api.post("bank")
    api.provider.silent = False
    answer = await api.post("bank")

    assert (answer.status_code, answer.headers["Retry-After"]) == (409, "1")
    assert answer.json()["code"] == "idempotency_outcome_unknown"
    assert api.count() == 0


async def test_a_quote_that_is_over_is_a_410(api: Api, testing_db: Database) -> None:
    quote = await api.ask(500)
    async with open_api(testing_db, later="1min") as later:
        late = await later.ask(500)

    assert quote.json() == {"id": 1, "amount": 500, "fee": 30}
    assert late.status_code == 410
    assert late.json()["code"] == "idempotency_key_expired"

"""The refund service answers what it cannot do in a form that its clients understand."""

import json
from collections.abc import Iterator

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from pyidem import Idem
from pyidem.demo import schema
from pyidem.demo.service import RefundRequest, RefundService
from tests.support.calls import reserve
from tests.support.database import Database

CLIENT = "shop-north"


class Provider:
    """A provider that must not be called."""

    def transfer(self, order: str, cents: int, *, idempotency_key: str) -> str:
        raise AssertionError(f"called for {order}, {cents}, {idempotency_key}")


@pytest.fixture
def service(db: Database) -> Iterator[RefundService]:
    with ConnectionPool(db.dsn, min_size=1, max_size=2, open=True) as pool:
        with pool.connection() as connection:
            connection.execute(schema.SHOP)
        yield RefundService(Idem(pool), Provider())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"order": "o", "cents": 0, "method": "card"}',
        b'{"order": "o", "cents": 1.5, "method": "card"}',
        b'{"order": "o", "cents": true, "method": "card"}',
        b'{"order": 1, "cents": 1, "method": "card"}',
        b'{"order": "o", "cents": 1, "method": "cash"}',
        b'{"order": "o", "cents": 1, "method": "card", "more": 1}',
    ],
)
def test_what_is_no_refund_request_is_refused_before_any_key_is_reserved(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"refund request has|Expecting value"):
        RefundRequest.parse(body)


def test_the_fingerprint_ignores_the_order_of_members_and_nothing_else() -> None:
    one = RefundRequest.parse(b'{"order": "o", "cents": 1, "method": "card"}')
    same = RefundRequest.parse(b'{"method": "card", "cents": 1, "order": "o"}')
    others = [RefundRequest("p", 1, "card"), RefundRequest("o", 2, "card"), RefundRequest("o", 1, "credit")]
    assert one.fingerprint() == same.fingerprint()
    assert one.fingerprint() not in [other.fingerprint() for other in others]


def test_a_reused_key_is_a_422_with_a_problem_document(service: RefundService) -> None:
    service.refund(CLIENT, "key", RefundRequest("o", 1, "credit"))
    response = service.refund(CLIENT, "key", RefundRequest("o", 2, "credit")).response
    assert response.status == 422
    assert response.headers == (("Content-Type", "application/problem+json"),)
    assert json.loads(response.body or b"")["code"] == "idempotency_key_reused"


def test_a_key_at_work_is_a_409_that_says_when_to_try_again(service: RefundService, db: Database) -> None:
    request = RefundRequest("o", 1, "card")
    with psycopg.connect(db.dsn, autocommit=True) as other:
        reserve(other, "key", scope=CLIENT, mode="leased", fingerprint=request.fingerprint())
    response = service.refund(CLIENT, "key", request).response
    assert response.status == 409
    assert dict(response.headers) == {"Content-Type": "application/problem+json", "Retry-After": "1"}
    assert json.loads(response.body or b"")["code"] == "idempotency_request_in_progress"


def test_a_missing_key_is_a_400_with_a_problem_document(service: RefundService) -> None:
    response = service.refund(CLIENT, "", RefundRequest("o", 1, "credit")).response
    assert response.status == 400
    assert json.loads(response.body or b"")["code"] == "idempotency_key_invalid"

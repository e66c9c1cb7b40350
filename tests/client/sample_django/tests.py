"""The project's tests."""

from datetime import timedelta

from django.db import connection
from django.test import TestCase, TransactionTestCase

from pyidem.testing import Clock, enable_testing, single_transaction
from tests.client.sample_django.urls import idem


def count_orders() -> int:
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from orders")
        return int(cursor.fetchone()[0])


class RequestTest(TransactionTestCase):
    """Requests whose transactions really commit and roll back."""

    def post(self, key: str, **query: str):
        self.client.raise_request_exception = False
        return self.client.post("/orders", headers={"Idempotency-Key": key}, query_params=query)

    def test_a_retry_gets_the_same_answer(self) -> None:
        before = count_orders()
        first, second = self.post("k1"), self.post("k1")
        assert first.status_code == 201
        assert (second.status_code, second.content) == (201, first.content)
        assert count_orders() == before + 1

    def test_a_request_that_fails_later_frees_the_key_and_the_retry_runs(self) -> None:
        before = count_orders()
        assert self.post("k2", fail="1").status_code == 500
        assert (count_orders(), idem.lookup("client:1", "k2").outcome) == (before, "absent")
        assert self.post("k2").status_code == 201
        assert count_orders() == before + 1


class RolledBackTest(TestCase):
    """Tests in Django's own transaction, which it rolls back."""

    @classmethod
    def setUpTestData(cls) -> None:
        enable_testing(connection)

    def setUp(self) -> None:
        single_transaction(connection)
        self.clock = Clock()
        self.clock.on(connection)

    def test_a_leased_operation(self) -> None:
        with idem.leased("client:1", "k") as op, op.transaction():
            op.complete(201)
        assert op.response.status == 201

    def test_the_same_key_again(self) -> None:
        self.test_a_leased_operation()

    def test_a_lapse(self) -> None:
        idem.reserve("client:1", "k", mode="leased")
        self.clock.lapse("client:1", "k")
        assert idem.lookup("client:1", "k").outcome == "lapsed"

    def test_an_expired_key(self) -> None:
        with idem.atomic("client:1", "k") as op:
            op.complete()
        self.clock.advance(timedelta(hours=25))
        assert idem.lookup("client:1", "k").outcome == "absent"

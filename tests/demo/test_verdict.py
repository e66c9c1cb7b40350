"""The verdict convicts whoever breaks a promise, and nobody else.

The service itself does the work, without any network; then the databases or the answers are tampered with.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import httpx
import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from pyidem import Swept
from pyidem.demo import schema
from pyidem.demo.operations import Operation, plan
from pyidem.demo.record import Heard
from pyidem.demo.service import Books, create_app
from pyidem.demo.unknown import Unknown
from pyidem.demo.verdict import judge, measure
from tests.support.calls import reserve
from tests.support.database import Database

COUNT = 12
JSON = {"Content-Type": "application/json"}


class Provider:
    """The provider, in the same database and without a network."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    async def transfer(self, order: str, amount: int, *, idempotency_key: str) -> str:
        self.transfer_now(order, amount, idempotency_key)
        row = self._connection.execute(
            "select 'tr_' || id from transfer where idempotency_key = %s", [idempotency_key]
        ).fetchone()
        assert row is not None
        return str(row[0])

    def transfer_now(self, order: str, amount: int, idempotency_key: str) -> None:
        self._connection.execute(
            "insert into transfer (idempotency_key, order_no, amount) values (%s, %s, %s) on conflict do nothing",
            [idempotency_key, order, amount],
        )
        self._connection.execute("insert into call (idempotency_key) values (%s)", [idempotency_key])


class Run:
    """Operations that were done, asked for twice each, and reused once."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.operations = plan(COUNT, Random(1))
        self.answers: defaultdict[Operation, list[Heard]] = defaultdict(list)
        self.reuse: defaultdict[Operation, list[Heard]] = defaultdict(list)
        self.unanswered: list[Operation] = []
        self.unknown = Unknown(2, Swept(completed=2))

    async def perform(self, http: httpx.AsyncClient) -> None:
        for operation in self.operations:
            for _ in range(2):
                self.answers[operation].append(await ask(http, operation, operation.body))
            self.reuse[operation].append(await ask(http, operation, operation.forged_body))

    @property
    def credit(self) -> Operation:
        return next(operation for operation in self.operations if operation.method == "credit")

    @property
    def card(self) -> Operation:
        return next(operation for operation in self.operations if operation.method == "card")

    def convicted(self) -> dict[str, Sequence[str]]:
        violations = judge(
            self.connection,
            self.connection,
            self.operations,
            self.unknown,
            answers=self.answers,
            reuse=self.reuse,
            unanswered=self.unanswered,
        )
        return {violation.what: violation.keys for violation in violations}


async def ask(http: httpx.AsyncClient, operation: Operation, body: bytes) -> Heard:
    headers = {"Authorization": operation.authorization, "Idempotency-Key": operation.key}
    return Heard.of_response(await http.post(operation.path, content=body, headers=headers | JSON))


@pytest.fixture
async def run(db: Database) -> AsyncIterator[Run]:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute(schema.SHOP)
        connection.execute(schema.PROVIDER)
        run = Run(connection)
        async with AsyncConnectionPool(db.dsn, min_size=1, max_size=4, open=False) as pool:
            transport = httpx.ASGITransport(create_app(pool, Provider(connection), Books()))
            async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as http:
                await run.perform(http)
        yield run


def cents_of(run: Run) -> int:
    return sum(operation.amount for operation in run.operations)


def test_a_run_without_fault_is_acquitted(run: Run) -> None:
    assert run.convicted() == {}


def test_the_effects_are_counted_in_the_databases(run: Run) -> None:
    by_card = [operation for operation in run.operations if operation.method == "card"]
    effects = measure(run.connection, run.connection)
    assert (effects.refunds, effects.refunded_cents) == (COUNT, cents_of(run))
    assert (effects.transfers, effects.provider_calls, effects.taken_over) == (len(by_card), len(by_card), 0)


def test_a_refund_made_twice_is_convicted_by_name(run: Run) -> None:
    run.connection.execute(
        "insert into refund (order_no, amount, method) select order_no, amount, method from refund where order_no = %s",
        [run.credit.order],
    )
    assert run.convicted() == {
        "was refunded more than once": (run.credit.name,),
        f"{cents_of(run) + run.credit.amount} cents were refunded in all, and {cents_of(run)} were asked for": (),
    }


def test_a_refund_that_was_answered_but_not_made_is_convicted_by_name(run: Run) -> None:
    run.connection.execute("delete from refund where order_no = %s", [run.card.order])
    assert run.convicted() == {
        "was not refunded": (run.card.name,),
        f"{cents_of(run) - run.card.amount} cents were refunded in all, and {cents_of(run)} were asked for": (),
    }


def test_a_refund_of_another_amount_is_convicted_by_name(run: Run) -> None:
    run.connection.execute("update refund set amount = amount + 1 where order_no = %s", [run.credit.order])
    assert run.convicted() == {
        "was refunded with another amount": (run.credit.name,),
        f"{cents_of(run) + 1} cents were refunded in all, and {cents_of(run)} were asked for": (),
    }


def test_a_refund_that_nobody_asked_for_is_convicted(run: Run) -> None:
    run.connection.execute("insert into refund (order_no, amount, method) values ('order-x', 1, 'credit')")
    assert run.convicted() == {
        "was refunded though nobody asked for it": ("order-x",),
        f"{cents_of(run) + 1} cents were refunded in all, and {cents_of(run)} were asked for": (),
    }


def test_a_second_transfer_under_another_downstream_key_is_convicted_by_name(run: Run) -> None:
    Provider(run.connection).transfer_now(run.card.order, run.card.amount, "another")
    assert run.convicted() == {"was transferred by the provider more than once": (run.card.name,)}


def test_a_transfer_that_was_never_made_is_convicted_by_name(run: Run) -> None:
    run.connection.execute("delete from transfer where order_no = %s", [run.card.order])
    assert run.convicted() == {
        "was not transferred by the provider": (run.card.name,),
        "names another transfer than the provider's": (run.card.name,),
    }


def test_a_transfer_that_the_provider_does_not_know_is_convicted_by_name(run: Run) -> None:
    run.connection.execute("update refund set transfer = 'tr_0' where order_no = %s", [run.card.order])
    assert run.convicted() == {"names another transfer than the provider's": (run.card.name,)}


@pytest.mark.parametrize(("outcomes", "settled"), [(0, 0), (2, 0), (1, 2)])
def test_a_sweeper_that_settles_nothing_or_more_than_was_unknown_is_convicted(
    outcomes: int, settled: int, run: Run
) -> None:
    run.unknown = Unknown(outcomes, Swept(completed=settled))
    (what,) = run.convicted()
    assert what == f"{outcomes} outcomes were unknown, and the sweeper has found out {settled} of them"


def test_an_owner_that_was_only_late_may_settle_its_own(run: Run) -> None:
    run.unknown = Unknown(2, Swept(completed=1))
    assert run.convicted() == {}


def test_a_transfer_for_store_credit_is_convicted(run: Run) -> None:
    Provider(run.connection).transfer_now(run.credit.order, run.credit.amount, "another")
    assert run.convicted() == {"was transferred by the provider though nobody asked for it": (run.credit.order,)}


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: replace(answer, body=answer.body + b" "),
        lambda answer: replace(answer, headers=answer.headers[::-1]),
        lambda answer: replace(answer, headers=answer.headers[:-1]),
    ],
    ids=["body", "order of headers", "headers"],
)
def test_answers_that_differ_in_anything_are_convicted_by_name(run: Run, change: Callable[[Heard], Heard]) -> None:
    first, second = run.answers[run.credit]
    run.answers[run.credit] = [first, change(second)]
    assert run.convicted() == {
        "got answers that differ": (run.credit.name,),
        "got an answer other than the stored one": (run.credit.name,),
    }


def test_answers_that_agree_but_are_not_the_stored_one_are_convicted_by_name(run: Run) -> None:
    run.answers[run.card] = [replace(answer, body=b"{}") for answer in run.answers[run.card]]
    assert run.convicted() == {"got an answer other than the stored one": (run.card.name,)}


def test_a_refusal_of_an_honest_request_is_convicted_by_name(run: Run) -> None:
    run.answers[run.card] = run.reuse[run.card]
    assert run.convicted() == {
        "got an answer other than 201": (run.card.name,),
        "got an answer other than the stored one": (run.card.name,),
    }


def test_a_key_that_served_another_amount_is_convicted_by_name(run: Run) -> None:
    run.reuse[run.credit] = run.answers[run.credit]
    assert run.convicted() == {"the key was accepted for another amount": (run.credit.name,)}


def test_a_request_that_nobody_answered_is_convicted_by_name(run: Run) -> None:
    run.unanswered.append(run.credit)
    assert run.convicted() == {"was not answered": (run.credit.name,)}


def test_a_key_left_unfinished_is_convicted_by_name(run: Run) -> None:
    reserve(run.connection, "left", scope="shop-x", mode="leased")
    assert run.convicted() == {"the key was left unfinished": ("shop-x/left (in_progress)",)}


def test_an_answer_that_is_stored_nowhere_is_convicted_by_name(run: Run) -> None:
    run.connection.execute(
        "delete from idem_private.reservation where scope = %s and key = %s", [run.credit.scope, run.credit.key]
    )
    assert run.convicted() == {
        "has no stored answer": (run.credit.name,),
        "got an answer other than the stored one": (run.credit.name,),
    }

"""Marks on messages: one transaction with the work, in the application's hands."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pyidem import InProgress, KeyInvalid, LimitExceeded, Mark, NoSuchPolicy, WrongMode
from tests.client.flavours import Client, OpenClient
from tests.support.database import Database

Count = Callable[[str], int]


def deliver(client: Client, lent: Any, scope: str, message_id: str = "m1") -> bool:
    """Handle a message as an application does: mark, work, commit."""
    first = client.once(scope, message_id, on=lent)
    assert isinstance(first, bool)
    if first:
        client.insert(lent, scope)
    client.finish(lent.commit())
    return first


def test_the_first_delivery_is_true_and_every_other_false(client: Client, scope: str, orders: Count) -> None:
    lent = client.lend()
    assert [deliver(client, lent, scope) for _ in range(3)] == [True, False, False]
    assert orders(scope) == 1


def test_a_rollback_takes_the_mark_with_the_work(client: Client, scope: str, orders: Count) -> None:
    lent = client.lend()
    assert client.once(scope, "m1", on=lent) is True
    client.insert(lent, scope)
    client.finish(lent.rollback())
    assert orders(scope) == 0
    assert deliver(client, lent, scope) is True
    assert orders(scope) == 1


def test_a_message_that_another_transaction_handles_is_in_progress(
    client: Client, scope: str, client_db: Database
) -> None:
    other = client_db.connect()
    other.execute("select idem.once(%s, 'm1')", [scope])
    lent = client.lend()
    with pytest.raises(InProgress, match="message") as raised:
        client.once(scope, "m1", on=lent)
    assert raised.value.hint == "Do not acknowledge the message; have it delivered again later."
    client.insert(lent, "the transaction is still usable")
    client.finish(lent.rollback())
    other.rollback()
    assert deliver(client, lent, scope) is True


def test_each_consumer_has_marks_of_its_own(client: Client, scope: str) -> None:
    lent = client.lend()
    assert [deliver(client, lent, scope + consumer) for consumer in ("billing", "mail", "mail")] == [True, True, False]


@pytest.mark.parametrize("message_id", ["", "  ", None, 7, b"m1", "a\0b", "\ud800"])
def test_what_is_no_usable_id_is_refused_and_not_taken_for_a_duplicate(
    client: Client, scope: str, message_id: Any
) -> None:
    lent = client.lend()
    for _ in range(2):
        with pytest.raises(KeyInvalid) as raised:
            client.once(scope, message_id, on=lent)
        assert raised.value.detail["argument"] == "key"
        client.finish(lent.rollback())


def test_an_unknown_policy_is_an_error(client: Client, scope: str) -> None:
    with pytest.raises(NoSuchPolicy):
        client.once(scope, "m1", policy="no such policy", on=client.lend())


@pytest.mark.parametrize("name", ["sync-connection", "async-connection", "sync-factory"])
@pytest.mark.parametrize("function", ["once", "once_many", "once_undo"])
def test_autocommit_is_refused_since_the_mark_would_commit_before_the_work(
    open_client: OpenClient, scope: str, name: str, function: str
) -> None:
    client = open_client(name)
    lent = client.lend()
    if client.asynchronous:
        client.finish(lent.set_autocommit(True))
    else:
        lent.autocommit = True
    argument = "m1" if function == "once" else ["m1"]
    with pytest.raises(WrongMode, match="autocommit"):
        getattr(client, function)(scope, argument, on=lent)
    assert client.lookup(scope, "m1").outcome == "absent"


def test_a_transaction_on_an_autocommit_connection_will_do(
    client_db: Database, open_client: OpenClient, scope: str
) -> None:
    idem = open_client("sync-pool").idem
    with psycopg.connect(client_db.dsn, autocommit=True) as connection:
        with connection.transaction():
            assert idem.once(scope, "m1", on=connection) is True
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with connection.transaction():
            assert idem.once(scope, "m1", on=connection) is False


def test_the_connection_must_be_given(open_client: OpenClient, scope: str) -> None:
    with pytest.raises(TypeError, match="on"):
        open_client("sync-pool").idem.once(scope, "m1")


def test_a_batch_answers_each_message_in_order(client: Client, scope: str) -> None:
    lent = client.lend()
    deliver(client, lent, scope, "b")
    marks = client.once_many(scope, ["a", "b", "c", "a"], on=lent)
    assert marks == [Mark(1, "a", "first"), Mark(2, "b", "duplicate"), Mark(3, "c", "first"), Mark(4, "a", "duplicate")]
    assert [mark.first for mark in marks] == [True, False, True, False]
    client.finish(lent.commit())
    assert {mark.outcome for mark in client.once_many(scope, ("a", "b", "c"), on=lent)} == {"duplicate"}
    client.finish(lent.rollback())


def test_a_batch_reports_what_is_in_progress_and_raises_nothing(
    client: Client, scope: str, client_db: Database
) -> None:
    other = client_db.connect()
    other.execute("select idem.once(%s, 'a')", [scope])
    lent = client.lend()
    assert [mark.outcome for mark in client.once_many(scope, ["a", "b"], on=lent)] == ["in_progress", "first"]
    client.finish(lent.rollback())


def test_an_empty_batch_is_an_empty_list(client: Client, scope: str) -> None:
    lent = client.lend()
    assert client.once_many(scope, [], on=lent) == []
    assert client.once_undo(scope, [], on=lent) == 0
    client.finish(lent.rollback())


@pytest.mark.parametrize("keys", [["a", ""], ["a", None], ["a", 7], ["a", "b\0"]])
def test_one_unusable_id_refuses_the_batch(client: Client, scope: str, keys: list[Any]) -> None:
    lent = client.lend()
    with pytest.raises(KeyInvalid):
        client.once_many(scope, keys, on=lent)
    client.finish(lent.rollback())
    assert client.lookup(scope, "a").outcome == "absent"


@pytest.mark.parametrize("function", ["once_many", "once_undo"])
@pytest.mark.parametrize("keys", ["abc", b"abc"])
def test_one_string_is_not_taken_for_a_batch_of_letters(client: Client, scope: str, function: str, keys: Any) -> None:
    with pytest.raises(TypeError, match="sequence of keys"):
        getattr(client, function)(scope, keys, on=client.lend())


def test_a_batch_above_the_limit_of_its_policy_is_refused(client: Client, scope: str) -> None:
    with pytest.raises(LimitExceeded) as raised:
        client.once_many(scope, [f"m{number}" for number in range(201)], on=client.lend())
    assert raised.value.detail["limit"] == 200


def test_the_one_message_of_a_batch_that_failed_can_be_taken_back(client: Client, scope: str) -> None:
    lent = client.lend()
    deliver(client, lent, scope, "old")
    client.once_many(scope, ["a", "b"], on=lent)
    assert client.once_undo(scope, ["b", "old", "never"], on=lent) == 1
    client.finish(lent.commit())
    outcomes = [mark.outcome for mark in client.once_many(scope, ["old", "a", "b"], on=lent)]
    assert outcomes == ["duplicate", "duplicate", "first"]
    client.finish(lent.rollback())


@pytest.mark.parametrize("consumer", ["", None, 7])
def test_the_consumer_must_have_a_name(client: Client, consumer: Any) -> None:
    with pytest.raises(KeyInvalid) as raised:
        client.once(consumer, "m1", on=client.lend())
    assert raised.value.detail["argument"] == "scope"

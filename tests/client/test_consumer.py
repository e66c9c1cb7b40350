"""A consumer: mark, handler and COMMIT as one, whatever the handler does."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from pyidem import Handled, InProgress, KeyInvalid, NoSuchPolicy, NotCompleted, WrongMode
from pyidem._errors import sqlstate_of
from tests.client.flavours import FLAVOURS, Client, OpenClient, hide_failure_before_commit
from tests.support.database import Database
from tests.support.waiting import wait_until

Count = Callable[[str], int]
Work = Callable[[Any, "Message"], Any]


@dataclass
class Message:
    """What a broker delivers."""

    id: Any


M1 = Message("m1")


def consumer(client: Client, scope: str, work: Work, **options: Any) -> Callable[[Message], Handled[Any]]:
    """Make a consumer of the client's flavour whose handler does that work."""
    decorate = client.idem.consumer(scope, key=lambda message: message.id, **options)
    if not client.asynchronous:

        @decorate
        def handle(connection: Any, message: Message) -> Any:
            return work(connection, message)

        return handle  # type: ignore[no-any-return]

    @decorate
    async def handle_async(connection: Any, message: Message) -> Any:
        return await asyncio.to_thread(work, connection, message)

    return lambda message: client.finish(handle_async(message))  # type: ignore[no-any-return]


def inserting(client: Client, scope: str, value: Any = None) -> Work:
    """Return work that inserts an order and returns the value."""

    def work(connection: Any, _: Message) -> Any:
        client.insert(connection, scope)
        return value

    return work


def test_a_redelivered_message_is_handled_once(client: Client, scope: str, orders: Count) -> None:
    handle = consumer(client, scope, inserting(client, scope, {"id": 7}))
    assert [handle(M1) for _ in range(3)] == [Handled(True, {"id": 7}), Handled(False), Handled(False)]
    assert orders(scope) == 1


@pytest.mark.parametrize("value", [None, 0, False, "", [], {"x": float("nan")}])
def test_whether_it_ran_is_told_apart_from_what_it_returned(
    open_client: OpenClient, scope: str, orders: Count, value: Any
) -> None:
    client = open_client("sync-pool")
    handle = consumer(client, scope, inserting(client, scope, value))
    first, second = handle(M1), handle(M1)
    assert (first.ran, first.value) == (True, value)
    assert second == Handled(ran=False, value=None)
    assert orders(scope) == 1


def test_a_failing_handler_rolls_back_mark_and_work_and_the_redelivery_runs(
    client: Client, scope: str, orders: Count
) -> None:
    failures = [ConnectionError("the mail server hung up"), None]

    def work(connection: Any, _: Message) -> str:
        client.insert(connection, scope)
        if failure := failures.pop(0):
            raise failure
        return "sent"

    handle = consumer(client, scope, work)
    failure = failures[0]
    with pytest.raises(ConnectionError) as raised:
        handle(M1)
    assert raised.value is failure
    assert (orders(scope), client.lookup(scope, "m1").outcome) == (0, "absent")
    assert [handle(M1), handle(M1)] == [Handled(True, "sent"), Handled(False)]
    assert orders(scope) == 1


def test_a_message_that_another_worker_handles_is_not_acknowledged(
    client: Client, scope: str, orders: Count, client_db: Database
) -> None:
    other = client_db.connect()
    other.execute("select idem.once(%s, 'm1')", [scope])
    handle = consumer(client, scope, inserting(client, scope))
    with pytest.raises(InProgress):
        handle(M1)
    assert orders(scope) == 0
    other.rollback()
    assert handle(M1).ran
    assert orders(scope) == 1


def test_ten_messages_with_a_duplicate_among_them_are_all_acknowledged(
    open_client: OpenClient, scope: str, orders: Count
) -> None:
    client = open_client("sync-pool")
    handle = consumer(client, scope, inserting(client, scope))
    handle(Message("m5"))
    ran = [handle(Message(f"m{number}")).ran for number in range(10)]
    assert ran == [number != 5 for number in range(10)]
    assert orders(scope) == 10


def test_two_consumers_each_handle_the_message(client: Client, scope: str, orders: Count) -> None:
    for name in ("billing", "mail"):
        handle = consumer(client, f"{scope}:{name}", inserting(client, scope))
        assert [handle(M1).ran, handle(M1).ran] == [True, False]
    assert orders(scope) == 2


def test_a_key_from_the_business_event_finds_the_copy_with_another_message_id(
    open_client: OpenClient, scope: str, orders: Count
) -> None:
    client = open_client("sync-pool")

    @client.idem.consumer(scope, key=lambda message: message["event"])
    def handle(connection: Any, _: dict[str, str]) -> None:
        client.insert(connection, scope)

    assert [handle({"id": id_, "event": "order-1-paid"}).ran for id_ in ("a", "b")] == [True, False]
    assert orders(scope) == 1


@pytest.mark.parametrize("message_id", ["", "  ", None, 7])
def test_a_message_without_a_usable_id_is_an_error_and_no_duplicate(
    client: Client, scope: str, orders: Count, message_id: Any
) -> None:
    handle = consumer(client, scope, inserting(client, scope))
    for _ in range(2):
        with pytest.raises(KeyInvalid):
            handle(Message(message_id))
    assert orders(scope) == 0


def test_an_unknown_policy_is_an_error(client: Client, scope: str) -> None:
    with pytest.raises(NoSuchPolicy):
        consumer(client, scope, inserting(client, scope), policy="no such policy")(M1)


def test_after_a_serialization_failure_mark_and_handler_run_again(client: Client, scope: str, orders: Count) -> None:
    runs = 0

    def work(connection: Any, _: Message) -> int:
        nonlocal runs
        runs += 1
        client.execute(connection, f"insert into orders (name) values ('{scope}-{runs}')")
        if runs < 3:
            fail(client, connection, "40001")
        return runs

    assert consumer(client, scope, work)(M1) == Handled(True, 3)
    assert [orders(f"{scope}-{run}") for run in (1, 2, 3)] == [0, 0, 1]


def test_it_runs_again_five_times_at_most(client: Client, scope: str) -> None:
    runs = 0

    def work(connection: Any, _: Message) -> None:
        nonlocal runs
        runs += 1
        fail(client, connection, "40001")

    with pytest.raises(Exception, match="on purpose") as raised:
        consumer(client, scope, work)(M1)
    assert sqlstate_of(raised.value) == "40001"
    assert runs == 5
    assert client.lookup(scope, "m1").outcome == "absent"


def test_other_errors_of_the_database_run_once(client: Client, scope: str) -> None:
    runs = 0

    def work(connection: Any, _: Message) -> None:
        nonlocal runs
        runs += 1
        fail(client, connection, "23505")

    with pytest.raises(Exception, match="on purpose"):
        consumer(client, scope, work)(M1)
    assert runs == 1


def fail(client: Client, connection: Any, sqlstate: str) -> None:
    """Raise an error in the database."""
    client.execute(connection, f"do $$begin raise exception 'on purpose' using errcode = '{sqlstate}'; end$$")


def test_an_error_at_commit_leaves_no_mark(client: Client, scope: str, orders: Count) -> None:
    def work(connection: Any, _: Message) -> None:
        client.insert(connection, scope)
        client.execute(connection, "insert into invoices values (-1)")

    with pytest.raises(Exception, match="_fkey"):
        consumer(client, scope, work)(M1)
    assert (orders(scope), client.lookup(scope, "m1").outcome) == (0, "absent")


def assert_rolled_back(client: Client, scope: str, orders: Count, work: Work) -> None:
    """Have a message handled in vain: nothing is left of the work, nor of the mark."""
    with pytest.raises(NotCompleted, match="rolled back inside"):
        consumer(client, scope, work)(M1)
    assert (orders(scope), client.lookup(scope, "m1").outcome) == (0, "absent")


@pytest.mark.parametrize("name", [name for name in FLAVOURS if name.endswith(("engine", "sessionmaker", "factory"))])
def test_a_handler_that_rolls_back_has_not_handled_the_message(
    open_client: OpenClient, scope: str, orders: Count, name: str
) -> None:
    client = open_client(name)

    def work(connection: Any, _: Message) -> None:
        client.insert(connection, scope)
        client.finish(connection.rollback())
        if client.source != "factory":  # where this begins another one that looks the same
            client.insert(connection, scope)

    assert_rolled_back(client, scope, orders, work)


def test_a_handler_cannot_end_the_transaction_by_itself(open_client: OpenClient, scope: str, orders: Count) -> None:
    ends = [("sync-pool", "commit"), ("sync-pool", "rollback"), ("async-pool", "commit"), ("async-pool", "rollback")]
    ends += [(name, "commit") for name in ("sync-engine", "async-sessionmaker", "async-asyncpg_engine")]
    for name, end in ends:
        client = open_client(name)

        def work(connection: Any, _: Message) -> None:
            client.insert(connection, scope)  # noqa: B023 - it is called within the loop
            client.finish(getattr(connection, end)())  # noqa: B023

        with pytest.raises(WrongMode, match="inside it"):
            consumer(client, scope, work)(Message(f"{name} {end}"))
        assert client.lookup(scope, f"{name} {end}").outcome == "absent"
    assert orders(scope) == 0


def test_a_handler_that_hides_a_failed_statement_has_not_handled_the_message(
    client: Client, scope: str, orders: Count
) -> None:
    def work(connection: Any, _: Message) -> None:
        client.insert(connection, scope)
        with suppress(Exception):
            client.execute(connection, "select 1 / 0")

    assert_rolled_back(client, scope, orders, work)
    assert consumer(client, scope, inserting(client, scope))(M1).ran
    assert orders(scope) == 1


@pytest.mark.parametrize("name", [name for name in FLAVOURS if name.endswith("sessionmaker")])
def test_a_hook_that_hides_a_failed_statement_has_not_handled_the_message(
    open_client: OpenClient, scope: str, orders: Count, name: str
) -> None:
    client = open_client(name)

    def work(session: Any, _: Message) -> None:
        client.insert(session, scope)
        hide_failure_before_commit(session)

    assert_rolled_back(client, scope, orders, work)


def test_a_killed_worker_leaves_no_mark_before_its_commit_and_one_after(
    client_db: Database, scope: str, open_client: OpenClient, orders: Count
) -> None:
    script = (
        "import sys, psycopg, pyidem\n"
        "idem = pyidem.Idem(psycopg.connect(sys.argv[1]))\n"
        "@idem.consumer(sys.argv[2], key=str)\n"
        "def handle(connection, message):\n"
        "    connection.execute('insert into orders (name) values (%s)', [sys.argv[2]])\n"
        "    if message == 'before':\n"
        "        print('working', flush=True)\n"
        "        sys.stdin.read()\n"
        "handle('after')\n"
        "handle('before')\n"
    )
    command = [sys.executable, "-c", script, client_db.dsn, scope]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGKILL)
    client = open_client("sync-pool")
    handle = consumer(client, scope, inserting(client, scope))
    assert handle(Message("after")) == Handled(ran=False)
    assert orders(scope) == 1

    def redelivered() -> bool:
        try:
            return handle(Message("before")).ran
        except InProgress:
            return False

    wait_until(redelivered, "the server to notice that the worker is gone")
    assert orders(scope) == 2


def test_of_simultaneous_deliveries_one_is_handled(open_client: OpenClient, scope: str, orders: Count) -> None:
    client = open_client("sync-pool", pool_size=4)
    entered, leave = threading.Event(), threading.Event()

    def work(connection: Any, _: Message) -> None:
        client.insert(connection, scope)
        entered.set()
        assert leave.wait(30)

    handle = consumer(client, scope, work)
    first = threading.Thread(target=handle, args=[M1])
    first.start()
    assert entered.wait(30)
    with pytest.raises(InProgress):
        handle(M1)
    leave.set()
    first.join()
    assert handle(M1) == Handled(ran=False)
    assert orders(scope) == 1


def test_the_handler_keeps_its_name_and_words(open_client: OpenClient, scope: str) -> None:
    @open_client("sync-pool").idem.consumer(scope, key=lambda message: message.id)
    def send_invoice(connection: Any, message: Message) -> None:
        """Send the invoice."""

    assert (send_invoice.__name__, send_invoice.__doc__) == ("send_invoice", "Send the invoice.")


async def asynchronous(connection: Any, message: Message) -> None:
    """Do nothing."""


def synchronous(connection: Any, message: Message) -> None:
    """Do nothing."""


class Callable_:  # noqa: N801
    """A handler that is an object."""

    async def __call__(self, connection: Any, message: Message) -> None:
        """Do nothing."""


def test_a_handler_of_the_other_flavour_is_refused_when_it_is_decorated(open_client: OpenClient, scope: str) -> None:
    for handler in (asynchronous, partial(asynchronous), Callable_()):
        with pytest.raises(TypeError, match="AsyncIdem"):
            open_client("sync-pool").idem.consumer(scope, key=str)(handler)
    with pytest.raises(TypeError, match="async def"):
        open_client("async-pool").idem.consumer(scope, key=str)(synchronous)


def test_a_connection_in_a_transaction_is_refused(open_client: OpenClient, scope: str) -> None:
    client = open_client("sync-connection")
    client.execute(client.origin, "select 1")
    with pytest.raises(Exception, match="already in a transaction"):
        consumer(client, scope, inserting(client, scope))(M1)


def test_errors_of_the_handler_are_those_of_its_driver(open_client: OpenClient, scope: str) -> None:
    def work(connection: Any, _: Message) -> None:
        connection.execute(text("select 1/0"))

    with pytest.raises(DBAPIError, match=r"division by zero|Division durch Null"):
        consumer(open_client("sync-engine"), scope, work)(M1)

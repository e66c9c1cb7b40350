"""Django's connection: in transactions of the block's own, and in those of Django."""

# ruff: noqa: PT012 - the statements after pytest.raises are the block under test

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import django
import psycopg
import pytest
from django.conf import settings
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.db.utils import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.test import Client as Browser
from django.test import override_settings
from django.urls import path
from psycopg.conninfo import conninfo_to_dict

from pyidem import Handled, Idem, InProgress, KeyInvalid, NotCompleted, WrongMode
from tests.support.database import Database
from tests.support.waiting import wait_until

Count = Callable[[str], int]


def place_order(request: HttpRequest) -> HttpResponse:
    """Insert an order in the transaction that ATOMIC_REQUESTS has opened for this view."""
    with idem.atomic(request.GET["scope"], request.GET["key"], on=connection, commit=False) as op:
        if op.started:
            insert(request.GET["scope"])
            op.complete(201, {"id": 1})
    if request.GET.get("fail"):
        raise ZeroDivisionError
    answer = op.response
    return HttpResponse(answer.body, status=answer.status)


urlpatterns = [path("orders", place_order)]
idem = Idem(lambda: connection)


def insert(name: str) -> None:
    """Insert an order as Django code does."""
    with connection.cursor() as cursor:
        cursor.execute("insert into orders (name) values (%s)", [name])


@pytest.fixture(scope="session")
def configured(client_db: Database) -> None:
    """Django, set up for the database of these tests. USE_TZ is off, which changes what Django makes of times."""
    server = conninfo_to_dict(client_db.dsn)
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": server["dbname"],
                "USER": server["user"],
                "PASSWORD": server["password"],
                "HOST": server["host"],
                "PORT": server["port"],
                "ATOMIC_REQUESTS": True,
            }
        },
        USE_TZ=False,
        TIME_ZONE="Asia/Tokyo",
        ROOT_URLCONF=__name__,
        ALLOWED_HOSTS=["testserver"],
        SECRET_KEY="for tests",
    )
    django.setup()


@pytest.fixture(autouse=True)
def closed(configured: None) -> Iterator[None]:  # noqa: ARG001 - it is to be there
    """Leave no connection behind."""
    yield
    connection.close()


def test_reservation_work_and_answer_commit_together(scope: str, orders: Count) -> None:
    for expected in ("started", "replay"):
        with idem.atomic(scope, "k") as op:
            assert op.outcome == expected
            if op.started:
                assert op.connection.in_atomic_block
                insert(scope)
                op.complete(201, {"id": 1}, [("x-a", "1")])
        assert op.response.headers == (("x-a", "1"), ("content-type", "application/json"))
    assert orders(scope) == 1
    assert connection.get_autocommit()


def test_an_exception_rolls_back_and_frees_the_key(scope: str, orders: Count) -> None:
    with pytest.raises(ZeroDivisionError), idem.atomic(scope, "k"):
        insert(scope)
        raise ZeroDivisionError
    with pytest.raises(NotCompleted), idem.atomic(scope, "k"):
        insert(scope)
    assert (orders(scope), idem.lookup(scope, "k").outcome) == (0, "absent")
    assert connection.get_autocommit()


def test_nested_atomic_blocks_are_savepoints(scope: str, orders: Count) -> None:
    with idem.atomic(scope, "k") as op:
        with pytest.raises(IntegrityError), transaction.atomic():
            insert(None)  # type: ignore[arg-type]
        insert(scope)
        op.complete(201)
    assert orders(scope) == 1


def test_what_django_is_going_to_roll_back_cannot_be_completed(scope: str, orders: Count) -> None:
    with pytest.raises(NotCompleted, match="rolled back inside"), idem.atomic(scope, "k") as op:
        insert(scope)
        transaction.set_rollback(True)
        op.complete(201)
    match = "rolled back inside"
    with pytest.raises(NotCompleted, match=match), idem.leased(scope, "l") as leased, leased.transaction():
        transaction.set_rollback(True)
        leased.complete(201)
    assert (orders(scope), idem.lookup(scope, "k").outcome, idem.lookup(scope, "l").outcome) == (0, "absent", "lapsed")


def test_hooks_run_after_the_commit_and_not_after_a_rollback(scope: str) -> None:
    seen: list[str] = []
    with idem.atomic(scope, "k") as op:
        transaction.on_commit(lambda: seen.append(idem.lookup(scope, "k").outcome))
        op.complete()
    with pytest.raises(NotCompleted), idem.atomic(scope, "other"):
        transaction.on_commit(lambda: seen.append("rolled back"))
    assert seen == ["completed"]


def test_errors_are_djangos_own_unless_they_are_ours(scope: str) -> None:
    with pytest.raises(KeyInvalid) as raised, idem.atomic(scope, ""):
        pytest.fail("the block was entered")
    assert raised.value.detail["argument"] == "key"
    assert isinstance(raised.value.__cause__, DatabaseError)
    with pytest.raises(ProgrammingError):
        idem.run(scope, "k", "no_such_function(jsonb)", {})
    with pytest.raises(IntegrityError), idem.atomic(scope, "k") as op:
        with connection.cursor() as cursor:
            cursor.execute("insert into invoices values (-1)")
        op.complete()
    assert connection.get_autocommit()


def test_times_are_aware_whatever_the_settings(scope: str) -> None:
    reservation = idem.reserve(scope, "k", mode="leased", state=["text"], lease=timedelta(minutes=3))
    assert reservation.created_at is not None
    assert reservation.created_at.tzinfo is not None
    assert reservation.lease_until == reservation.created_at + timedelta(minutes=3)
    assert idem.lookup(scope, "k").lease_until == reservation.lease_until


def test_a_leased_operation_holds_no_transaction_while_the_work_runs(scope: str, orders: Count) -> None:
    with idem.leased(scope, "k", state="text") as op:
        assert not connection.in_atomic_block
        assert op.state == "text"
        with op.transaction() as lent:
            assert lent.in_atomic_block
            insert(scope)
            op.checkpoint("charged")
        with op.transaction():
            op.complete(201)
    assert (orders(scope), idem.lookup(scope, "k").outcome) == (1, "completed")


def test_the_transaction_of_a_leased_answer_is_read_committed_whatever_the_default(scope: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("set session characteristics as transaction isolation level serializable")
        with idem.leased(scope, "k") as op, op.transaction():
            cursor.execute("show transaction_isolation")
            assert cursor.fetchone() == ("read committed",)
            op.complete(201)
        cursor.execute("show transaction_isolation")
        assert cursor.fetchone() == ("serializable",)


def test_the_heartbeat_has_a_connection_of_its_own_thread_and_leaves_none(
    scope: str, observer: psycopg.Connection
) -> None:
    def count_backends() -> int:
        row = observer.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = ''"
            " and backend_type = 'client backend' and pid <> pg_backend_pid()"
        ).fetchone()
        assert row is not None
        return int(row[0])

    before = count_backends()
    with idem.leased(scope, "k", heartbeat=timedelta(milliseconds=10)) as op:
        until = op.reservation.lease_until
        wait_until(lambda: idem.lookup(scope, "k").lease_until > until, "a heartbeat")  # type: ignore[operator]
        op.complete()
    connection.close()
    wait_until(lambda: not any(t.name == "pyidem-heartbeat" for t in threading.enumerate()), "the thread to end")
    wait_until(lambda: count_backends() <= before, "the connections to be closed")


def test_a_connection_is_left_open_for_the_rest_of_the_request_and_as_long_as_django_keeps_it(scope: str) -> None:
    opened = []
    for block in (idem.atomic, idem.leased):
        with block(scope, block.__name__) as op:
            op.complete()
        opened.append(connection.connection)
    assert opened[0] is not None
    assert opened == opened[:1] * 2


def test_a_connection_that_the_server_has_closed_is_replaced_at_entry(scope: str, observer: psycopg.Connection) -> None:
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    observer.execute("select pg_terminate_backend(%s, 10000)", [pid])
    with idem.atomic(scope, "k") as op:
        op.complete(201)
    assert op.response.status == 201


def test_a_block_of_its_own_is_refused_inside_a_transaction(scope: str) -> None:
    with transaction.atomic():
        for block in (idem.atomic, idem.leased):
            with pytest.raises(WrongMode, match="already in a transaction"), block(scope, "k"):
                pytest.fail("the block was entered")


def test_joined_the_outer_transaction_decides(scope: str, orders: Count) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with idem.atomic(scope, "k", on=connection, commit=False) as op:
            insert(scope)
            op.complete(201)
        raise ZeroDivisionError
    assert (orders(scope), idem.lookup(scope, "k").outcome) == (0, "absent")
    for expected in ("started", "replay"):
        with transaction.atomic(), idem.atomic(scope, "k", on=connection, commit=False) as op:
            assert op.outcome == expected
            if op.started:
                insert(scope)
                op.complete(201)
    assert orders(scope) == 1


def test_joining_outside_a_transaction_is_refused(scope: str) -> None:
    with pytest.raises(WrongMode, match="autocommit") as raised:
        idem.once(scope, "m1", on=connection)
    assert "transaction.atomic()" in (raised.value.hint or "")
    with (
        pytest.raises(WrongMode, match="autocommit"),
        idem.atomic(scope, "k", on=connection, commit=False),
    ):
        pytest.fail("the block was entered")


def test_once_in_a_transaction_of_django(scope: str, orders: Count) -> None:
    def handle() -> bool:
        with transaction.atomic():
            first = idem.once(scope, "m1", on=connection)
            if first:
                insert(scope)
        return first

    assert [handle(), handle()] == [True, False]
    assert orders(scope) == 1


def test_a_consumer_handles_a_message_once(scope: str, orders: Count) -> None:
    failures = [ZeroDivisionError(), None]

    @idem.consumer(scope, key=str)
    def handle(lent: Any, _: str) -> str:
        assert lent.in_atomic_block
        insert(scope)
        if failure := failures.pop(0):
            raise failure
        return "sent"

    with pytest.raises(ZeroDivisionError):
        handle("m1")
    assert [handle("m1"), handle("m1")] == [Handled(True, "sent"), Handled(False)]
    assert orders(scope) == 1


def test_a_handler_whose_transaction_django_rolls_back_has_not_handled_the_message(scope: str) -> None:
    @idem.consumer(scope, key=str)
    def handle(_: Any, __: str) -> None:
        transaction.set_rollback(True)

    with pytest.raises(NotCompleted, match="rolled back inside"):
        handle("m1")
    assert idem.lookup(scope, "m1").outcome == "absent"


def test_in_a_request_that_fails_the_key_goes_with_the_work_and_the_retry_runs(scope: str, orders: Count) -> None:
    browser = Browser(raise_request_exception=False)
    key = str(uuid4())
    query = {"scope": scope, "key": key}
    assert browser.get("/orders", {**query, "fail": "1"}).status_code == 500
    assert (orders(scope), idem.lookup(scope, key).outcome) == (0, "absent")
    answers = [browser.get("/orders", query) for _ in range(2)]
    assert [(answer.status_code, answer.content) for answer in answers] == [(201, b'{"id":1}')] * 2
    assert orders(scope) == 1


def test_a_request_with_a_key_in_use_is_told_so(scope: str, client_db: Database) -> None:
    other = client_db.connect()
    other.execute("select idem.reserve(%s, 'k')", [scope])
    with pytest.raises(InProgress):
        Browser().get("/orders", {"scope": scope, "key": "k"})
    other.rollback()


@override_settings(DEBUG=True)
def test_a_test_suite_may_run_it_all_in_one_transaction(scope: str, orders: Count) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("select set_config('idem.single_transaction', 'on', true)")
        for expected in ("started", "replay"):
            with idem.leased(scope, "l") as leased:
                assert leased.outcome == expected
                if leased.started:
                    with leased.transaction():
                        insert(scope)
                        leased.complete(201)
        with pytest.raises(NotCompleted), idem.atomic(scope, "k"):
            insert(scope + "-unfinished")
        with connection.cursor() as cursor:
            cursor.execute("select count(*) from orders where name like %s", [scope + "%"])
            assert cursor.fetchone() == (1,)
        raise ZeroDivisionError
    assert orders(scope) == 0

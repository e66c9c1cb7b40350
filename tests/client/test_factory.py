"""A function that returns DB-API connections, and such connections in the application's hands."""

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
import psycopg2
import pytest
from psycopg2.extensions import TRANSACTION_STATUS_IDLE

from pyidem import Handled, Idem, NotCompleted
from pyidem._errors import sqlstate_of
from tests.support.database import Database

Count = Callable[[str], int]


@pytest.fixture(params=[psycopg2, psycopg], ids=["psycopg2", "psycopg"])
def made(request: pytest.FixtureRequest, client_db: Database) -> tuple[Callable[[], Any], list[Any]]:
    """A factory, and the list of what it has made."""
    connections: list[Any] = []

    def make() -> Any:
        connections.append(request.param.connect(client_db.dsn))
        return connections[-1]

    return make, connections


def test_each_unit_of_work_has_a_connection_of_its_own_which_is_closed(
    made: tuple[Callable[[], Any], list[Any]], scope: str
) -> None:
    make, connections = made
    idem = Idem(make)
    assert connections == []
    with idem.atomic(scope, "k") as op:
        assert op.connection is connections[-1]
        op.complete(201)
    with idem.leased(scope, "l") as leased, leased.transaction():
        leased.complete(201)
    with pytest.raises(NotCompleted), idem.atomic(scope, "other"):
        pass
    idem.version()
    assert len(connections) == 5
    assert all(connection.closed for connection in connections)


def test_a_consumer_opens_and_closes_one_for_each_message(
    made: tuple[Callable[[], Any], list[Any]], scope: str, orders: Count
) -> None:
    make, connections = made

    @Idem(make).consumer(scope, key=str)
    def handle(connection: Any, _: str) -> None:
        connection.cursor().execute("insert into orders (name) values (%s)", [scope])

    assert [handle("m1"), handle("m1")] == [Handled(ran=True), Handled(ran=False)]
    assert [bool(connection.closed) for connection in connections] == [True, True]
    assert orders(scope) == 1


def test_a_factory_of_something_else_is_found_out_when_it_is_used(scope: str) -> None:
    def make() -> dict[str, str]:
        return {}

    with pytest.raises(TypeError, match="must return DB-API connections, not dict"):
        Idem(make).lookup(scope, "k")


def test_a_database_that_is_not_postgresql_raises_its_own_error(scope: str) -> None:
    with pytest.raises(sqlite3.Error), Idem(lambda: sqlite3.connect(":memory:")).atomic(scope, "k"):
        pytest.fail("the block was entered")


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_lent_connection_is_given_back_in_the_mode_it_came_in(
    client_db: Database, scope: str, *, autocommit: bool
) -> None:
    lent = psycopg2.connect(client_db.dsn)
    lent.autocommit = autocommit
    idem = Idem(lambda: psycopg2.connect(client_db.dsn))
    with idem.leased(scope, "k", on=lent) as op:
        with pytest.raises(ZeroDivisionError), op.transaction():
            raise ZeroDivisionError
        assert lent.autocommit is autocommit
        with op.transaction() as connection:
            assert connection is lent
            op.complete(201)
    assert (lent.closed, lent.autocommit, lent.info.transaction_status) == (0, autocommit, TRANSACTION_STATUS_IDLE)
    lent.close()
    assert op.response.status == 201


def test_json_means_the_same_whatever_the_driver_makes_of_it(client_db: Database, scope: str) -> None:
    idem = Idem(lambda: psycopg2.connect(client_db.dsn))
    for number, state in enumerate(["text", "7", 7, [1, None], {"a": "\u00e9"}]):
        with idem.leased(scope, f"k{number}", state=state) as op:
            assert op.state == state
            op.complete()


def test_errors_keep_their_code_and_class(client_db: Database, scope: str) -> None:
    idem = Idem(lambda: psycopg2.connect(client_db.dsn))
    with pytest.raises(psycopg2.errors.UndefinedFunction) as raised:
        idem.run(scope, "k", "no_such_function(jsonb)", {})
    assert sqlstate_of(raised.value) == "42883"

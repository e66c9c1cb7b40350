"""`run`: reserve, handler and answer in one call."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pyidem import InProgress, KeyReused, NotCompleted, Response
from pyidem._adapters.psycopg import PsycopgUnit
from pyidem._errors import sqlstate_of
from tests.client.flavours import Client, OpenClient
from tests.client.test_round_trips import Wire, driver_connection
from tests.support.database import Database

Count = Callable[[str], int]


@pytest.fixture
def handler(observer: psycopg.Connection) -> str:
    """A function in the database that inserts an order and answers with its arguments."""
    observer.execute(
        "create or replace function place(args jsonb) returns idem.response language plpgsql as $$begin"
        " insert into orders (name) values (args ->> 'name');"
        " if args ? 'fail' then raise exception 'out of stock'; end if;"
        ' return idem.json_response(201, args::json, \'[["x-a", "1"]]\'); end$$'
    )
    return "place(jsonb)"


def test_the_handler_runs_once_and_every_caller_gets_its_answer(
    client: Client, scope: str, handler: str, orders: Count
) -> None:
    answers = [client.run(scope, "k", handler, {"name": scope, "text": "\u00e9"}) for _ in range(3)]
    assert [answer.outcome for answer in answers] == ["started", "replay", "replay"]
    assert {answer.response for answer in answers} == {answers[0].response}
    response = answers[0].response
    assert isinstance(response, Response)
    assert (response.status, response.headers[-1]) == (201, ("x-a", "1"))
    assert scope.encode() in (response.body or b"")
    assert orders(scope) == 1


def test_an_error_of_the_handler_leaves_the_key_free(client: Client, scope: str, handler: str, orders: Count) -> None:
    with pytest.raises(Exception, match="out of stock"):
        client.run(scope, "k", handler, {"name": scope, "fail": True})
    assert (orders(scope), client.lookup(scope, "k").outcome) == (0, "absent")
    assert client.run(scope, "k", handler, {"name": scope}).started
    assert orders(scope) == 1


def test_the_fingerprint_is_compared(client: Client, scope: str, handler: str) -> None:
    client.run(scope, "k", handler, {"name": scope}, fingerprint=b"a")
    answer = client.run(scope, "k", handler, {"name": scope}, fingerprint=b"b")
    assert answer.outcome == "mismatch"
    with pytest.raises(KeyReused):
        _ = answer.response


def test_a_key_in_use_is_in_progress(client: Client, scope: str, handler: str, client_db: Database) -> None:
    other = client_db.connect()
    other.execute("select idem.reserve(%s, 'k')", [scope])
    answer = client.run(scope, "k", handler, {"name": scope})
    with pytest.raises(InProgress) as raised:
        _ = answer.response
    assert raised.value.retry_after == answer.retry_after
    other.rollback()


def test_it_may_join_the_transaction_of_the_caller(client: Client, scope: str, handler: str, orders: Count) -> None:
    lent = client.lend()
    assert client.run(scope, "k", handler, {"name": scope}, on=lent).started
    client.finish(lent.rollback())
    assert (orders(scope), client.lookup(scope, "k").outcome) == (0, "absent")


def test_arguments_may_be_anything_that_json_encodes(client: Client, scope: str, observer: psycopg.Connection) -> None:
    observer.execute(
        "create or replace function echo(args jsonb) returns idem.response language sql as"
        " 'select idem.json_response(200, args::json)'"
    )
    for number, args in enumerate([{"a": [1, None]}, [], "text", 7, True]):
        assert client.run(scope, f"k{number}", "echo(jsonb)", args).status == 200


@pytest.mark.parametrize(
    ("unfit", "sqlstate"), [("version()", "22023"), ("no_such_function(jsonb)", "42883"), ("place", "22P02")]
)
def test_what_is_no_handler_is_refused(client: Client, scope: str, unfit: str, sqlstate: str) -> None:
    with pytest.raises(Exception, match=r".") as raised:
        client.run(scope, "k", unfit, {})
    assert sqlstate_of(raised.value) == sqlstate


def test_there_is_no_response_before_there_is_an_answer(client: Client, scope: str) -> None:
    reservation = client.reserve(scope, "k", mode="leased")
    with pytest.raises(NotCompleted, match="started"):
        _ = reservation.response
    client.complete(scope, "k", reservation.token, status=204)
    assert client.lookup(scope, "k").response == Response(204)
    with pytest.raises(NotCompleted, match="absent"):
        _ = client.lookup(scope, "other").response


@pytest.mark.parametrize("name", ["sync-pool", "sync-sessionmaker", "async-engine"])
def test_it_costs_one_round_trip(open_client: OpenClient, scope: str, handler: str, tmp_path: Any, name: str) -> None:
    client = open_client(name, pool_size=1)
    with client.atomic(scope, "warm") as op:
        connection = driver_connection(client, op.connection)
        op.complete()
    wire = Wire(tmp_path / "trace")
    with wire.watch(connection):
        client.run(scope, "k", handler, {"name": scope})
    assert wire.round_trips() == 1


def test_a_lost_acknowledgement_is_answered_by_the_replay(
    open_client: OpenClient, scope: str, handler: str, orders: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, lost = PsycopgUnit.once, iter([True])

    def lose_the_first(unit: PsycopgUnit, call: Any) -> Any:
        answer = once(unit, call)
        if next(lost, False):
            unit.handle.close()
            raise psycopg.OperationalError("the connection was lost after COMMIT")
        return answer

    monkeypatch.setattr(PsycopgUnit, "once", lose_the_first)
    answer = open_client("sync-pool").run(scope, "k", handler, {"name": scope})
    assert (answer.outcome, answer.response.status) == ("replay", 201)
    assert orders(scope) == 1

"""What is sent for a call, and how its answer is read, against the functions that the database has."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg.types.json import set_json_loads

from pyidem import HttpCall, Idem, _calls
from pyidem._adapters.exchange import exchange
from pyidem._calls import Call

HOT = {"reserve", "complete", "http_reserve", "http_complete", "run", "once"}
REQUEST = HttpCall('"k"', "POST", "/orders", b"{}", "application/json")
TOKEN = UUID(int=1)
CALLS: list[Call[Any]] = [
    _calls.reserve("s", "k"),
    _calls.complete("s", "k", TOKEN),
    _calls.http_reserve("s", REQUEST),
    _calls.http_complete("s", "k", TOKEN, 201),
    _calls.release("s", "k", TOKEN),
    _calls.defer("s", "k", TOKEN, retry_in=timedelta(1), reason="r"),
    _calls.extend("s", "k", TOKEN, lease=timedelta(1)),
    _calls.checkpoint("s", "k", TOKEN, "charged", state=1),
    _calls.lookup("s", "k"),
    _calls.run("s", "k", "pay(jsonb)", {}),
    _calls.once("s", "m"),
    _calls.once_many("s", ["m"], policy="messages"),
    _calls.once_undo("s", ["m"]),
    _calls.downstream_key("s", "k", "step"),
    _calls.claim_lapsed(1, lease=timedelta(1), policy="p", scope="s", key="k"),
    _calls.resolve("s", "k", "retry", "r", attempt=1, force=True),
    _calls.history("s", "k"),
]


@pytest.fixture
def connection(client_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(client_dsn, autocommit=True) as opened:
        yield opened


def answer(connection: psycopg.Connection[Any], sql: str, record: tuple[str, ...]) -> Any:
    """Make a call that returns a record, and return its fields."""
    call: Call[Any] = Call("", {}, lambda rows: rows[0], whole=sql, record=record)
    with connection.lock:
        return call.decode(connection.wait(exchange(connection, (b"begin",), call, (b"commit",))))


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call.name))
def test_arguments_by_position_are_in_the_order_of_the_function(
    connection: psycopg.Connection[Any], call: Call[Any]
) -> None:
    found = connection.execute(
        "select p.proargnames[:p.pronargs] from pg_proc as p"
        " where p.pronamespace = 'idem'::regnamespace and p.proname = %s",
        [call.name],
    ).fetchone()
    assert found is not None
    by_position = [name for name in call.params if f"{name} => " not in call.sql]
    assert by_position == found[0][: len(by_position)]
    assert set(call.params) <= set(found[0])
    if call.name in HOT:
        assert by_position == found[0]


@pytest.mark.parametrize("call", [call for call in CALLS if call.record], ids=lambda call: str(call.name))
def test_a_record_is_read_as_the_database_defines_it(connection: psycopg.Connection[Any], call: Call[Any]) -> None:
    found = connection.execute(
        "select array_agg(a.attname::text order by a.attnum) from pg_proc as p"
        " inner join pg_type as t on p.prorettype = t.oid inner join pg_attribute as a on t.typrelid = a.attrelid"
        " where p.pronamespace = 'idem'::regnamespace and p.proname = %s",
        [call.name],
    ).fetchone()
    assert found is not None
    assert list(call.record) == found[0]


def test_fields_that_an_older_version_does_not_have_count_as_null(connection: psycopg.Connection[Any]) -> None:
    older = "select row('replay'::text, 7)"
    assert answer(connection, older, ("outcome", "attempt", "added")) == {
        "outcome": "replay", "attempt": 7, "added": None,
    }  # fmt: skip


def test_fields_that_a_later_version_adds_to_a_record_are_left_alone(connection: psycopg.Connection[Any]) -> None:
    later = """select row('replay'::text, null::int, 7, '\\x00ff'::bytea, '"x"'::jsonb, 'more'::text, null::uuid)"""
    assert answer(connection, later, ("outcome", "attempt", "status", "body", "state")) == {
        "outcome": "replay", "attempt": None, "status": 7, "body": b"\x00\xff", "state": '"x"',
    }  # fmt: skip


def test_what_psycopg_was_taught_to_load_changes_nothing(connection: psycopg.Connection[Any], scope: str) -> None:
    def unasked(*_: object) -> None:
        pytest.fail("the application's loader was asked")

    set_json_loads(unasked, connection)
    reservation = CompositeInfo.fetch(connection, "idem.reservation")
    assert reservation is not None
    register_composite(reservation, connection, unasked)
    idem = Idem(connection)
    state, headers = {"amount": 1, "note": "é\n"}, [("X-Note", "ü")]
    reserved = idem.reserve(scope, "k", mode="leased", state=state)
    assert (reserved.outcome, reserved.state) == ("started", state)
    assert reserved.token is not None
    assert idem.complete(scope, "k", reserved.token, status=201, headers=headers, body="é")
    with idem.atomic(scope, "k") as op:
        assert (op.response.status, op.response.headers, op.response.body) == (201, tuple(headers), "é".encode())
    with connection.transaction():
        assert idem.reserve(scope, "k", on=connection).response == op.response


def test_a_record_is_read_inside_the_applications_pipeline(connection: psycopg.Connection[Any], scope: str) -> None:
    idem = Idem(connection)
    with connection.transaction(), connection.pipeline():
        connection.execute("select 1")
        reserved = idem.reserve(scope, "k", on=connection)
        assert reserved.started
        assert reserved.token is not None
        assert idem.complete(scope, "k", reserved.token, status=201, on=connection)
        assert idem.lookup(scope, "k", on=connection).status == 201

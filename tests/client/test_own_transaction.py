"""The transaction that a block begins on a psycopg connection: the connection's settings count, and nothing stays."""

from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel, generators

from pyidem import Idem, IdempotencyError, NotCompleted, WrongMode
from tests.client.flavours import Client, OpenClient

ON_A_CONNECTION = ["sync-connection", "async-connection"]


@pytest.fixture(params=ON_A_CONNECTION)
def client(request: pytest.FixtureRequest, open_client: OpenClient) -> Client:
    """A client on one psycopg connection of the application's."""
    return open_client(request.param)


def set_on(client: Client, name: str, value: object) -> None:
    """Change an attribute of the connection, as the application would."""
    if client.asynchronous:
        client.finish(getattr(client.origin, f"set_{name}")(value))
    else:
        setattr(client.origin, name, value)


def shown(client: Client, handle: Any, setting: str) -> str:
    """Return a setting of the transaction."""
    return str(client.execute(handle, f"show {setting}")[0][0])


@pytest.mark.parametrize("level", list(IsolationLevel))
def test_a_block_begins_as_the_connection_is_set_to_begin(client: Client, scope: str, level: IsolationLevel) -> None:
    set_on(client, "isolation_level", level)
    set_on(client, "deferrable", True)
    with client.atomic(scope, "k") as op:
        assert shown(client, op.connection, "transaction_isolation").upper() == level.name.replace("_", " ")
        assert shown(client, op.connection, "transaction_deferrable") == "on"
        op.complete(201)
    assert client.lookup(scope, "k").outcome == "completed"


def test_a_connection_set_to_read_only_cannot_reserve(client: Client, scope: str) -> None:
    set_on(client, "read_only", True)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), client.atomic(scope, "k"):
        pytest.fail("the block was entered")
    set_on(client, "read_only", False)
    with client.atomic(scope, "k") as op:
        op.complete(201)


def test_an_answer_of_the_lease_is_stored_in_read_committed_whatever_is_set(client: Client, scope: str) -> None:
    set_on(client, "isolation_level", IsolationLevel.SERIALIZABLE)
    with client.leased(scope, "k") as op, client.block(op.transaction) as connection:
        assert shown(client, connection, "transaction_isolation") == "read committed"
        op.complete(201)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_the_application_cannot_end_it_and_can_afterwards(client: Client, scope: str, end: str) -> None:
    def end_it() -> None:
        client.finish(getattr(client.origin, end)())

    with client.atomic(scope, "k") as op:
        with pytest.raises(WrongMode, match="ended inside"):
            end_it()
        op.complete(201)
    end_it()
    with pytest.raises(NotCompleted), client.atomic(scope, "unfinished"):
        pass
    end_it()
    with pytest.raises(IdempotencyError), client.atomic(scope, ""):
        pytest.fail("the block was entered")
    end_it()
    with client.leased(scope, "l") as leased:
        with client.block(leased.transaction), pytest.raises(WrongMode, match="ended inside"):
            end_it()
        end_it()
        leased.complete()
    assert client.lookup(scope, "k").outcome == "completed"


def test_transactions_of_the_application_nest_in_it(client: Client, scope: str) -> None:
    with client.atomic(scope, "k") as op:
        with suppress(ZeroDivisionError), client.block(op.connection.transaction):
            client.insert(op.connection, scope)
            raise ZeroDivisionError
        with client.block(op.connection.transaction):
            client.insert(op.connection, scope)
        op.complete(201)
    assert client.execute(client.origin, f"select count(*) from orders where name = '{scope}'") == [(1,)]
    client.finish(client.origin.rollback())


def test_pipeline_mode_is_for_the_work_alone(client: Client, scope: str) -> None:
    with client.block(client.origin.pipeline):
        with pytest.raises(WrongMode, match="pipeline"), client.atomic(scope, "k"):
            pytest.fail("the block was entered")
        assert client.finish(client.idem.once(scope, "m", on=client.origin))
        client.finish(client.origin.commit())
    with client.atomic(scope, "k") as op:
        with client.block(op.connection.pipeline):
            client.insert(op.connection, scope)
        op.complete(201)
    assert client.lookup(scope, "k").outcome == "completed"
    assert client.lookup(scope, "m").outcome == "completed"


def test_an_attempt_to_end_it_by_joining_it_is_refused_and_ends_nothing(client: Client, scope: str) -> None:
    with client.leased(scope, "k") as op, client.block(op.transaction) as connection:
        client.insert(connection, scope)
        with pytest.raises(WrongMode, match="ended"), client.atomic(scope, "l", on=connection, commit=True) as joined:
            joined.complete(201)
        op.complete(201)
    assert client.execute(client.origin, f"select count(*) from orders where name = '{scope}'") == [(1,)]
    client.finish(client.origin.rollback())
    assert client.lookup(scope, "k").outcome == "completed"


def test_what_the_application_has_put_in_the_place_of_commit_stays_there(client: Client, scope: str) -> None:
    own = client.origin.commit
    client.origin.commit = own
    with client.atomic(scope, "k") as op:
        op.complete(201)
    assert vars(client.origin)["commit"] is own
    with pytest.raises(NotCompleted), client.atomic(scope, "unfinished"):
        pass
    assert vars(client.origin)["commit"] is own


def test_a_result_that_was_not_read_to_its_end_is_not_taken_for_a_rollback(client: Client, scope: str) -> None:
    def left_busy() -> None:
        with client.atomic(scope, "k") as op:
            op.connection.pgconn.send_query(b"select generate_series(1, 1000000)")
            op.complete(201)

    with pytest.raises(psycopg.OperationalError, match=r"not idle|in progress"):
        left_busy()
    client.finish(client.origin.close())


def test_a_connection_that_was_closed_inside_says_so_afterwards(client: Client, scope: str) -> None:
    with pytest.raises(NotCompleted), client.atomic(scope, "k") as op:
        client.finish(op.connection.close())
    with pytest.raises(psycopg.OperationalError, match="closed"):
        client.finish(client.origin.commit())


@pytest.mark.parametrize("function", ["send", "fetch_many"])
def test_a_connection_that_was_interrupted_half_way_is_closed(
    client_dsn: str, scope: str, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with psycopg.connect(client_dsn) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(generators, function, interrupted)
            with pytest.raises(KeyboardInterrupt), Idem(connection).atomic(scope, "k"):
                pytest.fail("the block was entered")
        with pytest.raises(psycopg.OperationalError, match="closed"):
            connection.execute("select 1")

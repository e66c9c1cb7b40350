"""A claim on one key: whoever learns from outside what happened settles it."""

from collections.abc import Callable

import psycopg
import pytest

from pyidem import LostReservation, Response
from tests.client.flavours import Client
from tests.client.resolvers import key_of, lapse

Count = Callable[[str], int]


def test_a_lapsed_key_is_settled_with_its_business_write(
    client: Client, scope: str, observer: psycopg.Connection, orders: Count
) -> None:
    lapse(observer, scope, state={"amount": 7})
    with client.block(lambda: client.idem.claim(scope, "k")) as op, client.block(op.transaction) as connection:
        assert (op.started, op.attempt, op.state) == (True, 1, {"amount": 7})
        assert (op.lapsed.claims, op.lapsed.reason, op.lapsed.policy) == (1, "gone", "default")
        client.insert(connection, scope)
        op.complete(201, {"id": 1})
    assert op.response == Response(201, (("content-type", "application/json"),), b'{"id":1}')
    with client.leased(scope, "k") as retry:
        assert retry.outcome == "replay"
    assert retry.response == op.response
    assert orders(scope) == 1


def test_it_passes_on_the_downstream_key_of_the_owner(client: Client, scope: str, observer: psycopg.Connection) -> None:
    lapse(observer, scope)
    with client.block(lambda: client.idem.claim(scope, "k")) as op:
        assert op.downstream_key() == client.downstream_key(scope, "k")
        op.complete()


def test_there_is_nothing_to_claim_where_nothing_is_unknown(client: Client, scope: str) -> None:
    with client.block(lambda: client.idem.claim(scope, "k")) as op:
        assert op is None
    with client.leased(scope, "k") as owner:
        with client.block(lambda: client.idem.claim(scope, "k")) as op:
            assert op is None
        owner.complete(204)
    with client.block(lambda: client.idem.claim(scope, "k")) as op:
        assert op is None


def test_the_owner_is_told_that_the_key_is_no_longer_its_own(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    token = lapse(observer, scope)
    with client.block(lambda: client.idem.claim(scope, "k")) as op:
        with pytest.raises(LostReservation):
            client.complete(scope, "k", token, status=500)
        with client.block(lambda: client.idem.claim(scope, "k")) as other:
            assert other is None
        op.complete(200)
    assert client.lookup(scope, "k").status == 200


def test_an_exception_leaves_the_outcome_unknown(client: Client, scope: str, observer: psycopg.Connection) -> None:
    lapse(observer, scope)
    with pytest.raises(ZeroDivisionError), client.block(lambda: client.idem.claim(scope, "k")):
        raise ZeroDivisionError("the secret")
    key = key_of(observer, scope)
    assert (key["outcome"], key["reason"], key["claims"]) == ("lapsed", "ZeroDivisionError", 1)


def test_a_released_key_may_run_again(client: Client, scope: str, observer: psycopg.Connection) -> None:
    lapse(observer, scope)
    with client.block(lambda: client.idem.claim(scope, "k")) as op:
        client.finish(op.release())
    with client.leased(scope, "k") as retry:
        assert retry.started
        retry.complete()


def test_a_lent_connection_serves_it(client: Client, scope: str, observer: psycopg.Connection) -> None:
    lapse(observer, scope)
    lent = client.lend()
    with client.block(lambda: client.idem.claim(scope, "k", on=lent)) as op, client.block(op.transaction) as connection:
        assert connection is lent
        op.complete(204)
    assert client.lookup(scope, "k").status == 204


def test_the_calls_of_recovery_can_be_made_by_themselves(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    lapse(observer, scope, state=[1])
    lapse(observer, scope, "other")
    (claimed,) = client.claim_lapsed(5, scope=scope, key="k")
    assert (claimed.key, claimed.state, claimed.claims) == ("k", [1], 1)
    assert str(claimed.token) not in repr(claimed)
    assert client.claim_lapsed(scope=scope, key="k") == []
    assert client.resolve(scope, "other", "retry", "testing", attempt=7) is False
    assert client.resolve(scope, "other", "complete", "testing", status=201, body={"id": 1}) is True
    assert client.lookup(scope, "other").body == b'{"id":1}'
    events = client.history(scope, "other")
    assert [event.event for event in events] == ["reserved", "deferred", "resolved", "completed"]
    assert events[2].detail == {"action": "complete", "status": 201}
    assert (events[2].reason, events[2].attempt, events[2].at.tzinfo is not None) == ("testing", 1, True)

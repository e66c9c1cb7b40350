"""I11: completion repeated returns false and changes nothing. I12: reserve repeated by its owner is started again."""

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import complete, owner_call, reserve, sqlstate_of, stored
from tests.support.database import Database, advance_clock

ANSWER = {"status": 201, "headers": Jsonb([["a", "b"]]), "body": b"{}"}


def test_i11_the_same_completion_again_is_false(db: Database) -> None:
    connection = db.connect()
    owner = reserve(connection, "k", mode="leased")
    connection.commit()
    assert complete(connection, "k", owner.token, **ANSWER) is True
    connection.commit()
    before = stored(connection, "k")
    assert complete(connection, "k", owner.token, **ANSWER) is False
    connection.commit()
    assert stored(connection, "k") == before


@pytest.mark.parametrize(
    "change",
    [{"status": 200}, {"status": None}, {"headers": None}, {"headers": Jsonb([])}, {"body": b""}, {"body": None}],
    ids=str,
)
def test_i11_with_other_content_the_first_stays(db: Database, change: dict[str, object]) -> None:
    connection = db.connect()
    owner = reserve(connection, "k", mode="leased")
    connection.commit()
    complete(connection, "k", owner.token, **ANSWER)
    connection.commit()
    before = stored(connection, "k")
    assert sqlstate_of(connection, "complete", scope="shop", key="k", token=owner.token, **ANSWER | change) == "IK002"
    assert stored(connection, "k") == before


def test_i11_two_completions_at_once_store_one_answer(db: Database, in_thread) -> None:  # type: ignore[no-untyped-def]
    first, second = db.connect(), db.connect()
    owner = reserve(first, "k", mode="leased")
    first.commit()
    complete(first, "k", owner.token, status=201)
    late = in_thread(lambda: complete(second, "k", owner.token, status=500))
    db.wait_until_blocked(second)
    first.commit()
    with pytest.raises(psycopg.Error) as caught:
        late.result()
    assert caught.value.sqlstate == "IK002"


def test_i12_a_lost_acknowledgement_cannot_lock_the_owner_out(testing_db: Database) -> None:
    token = uuid4()
    with testing_db.connect() as connection:
        first = reserve(connection, "k", token=token, mode="leased", lease=timedelta(minutes=5))
    with testing_db.connect() as connection:
        advance_clock(connection, timedelta(minutes=1))
        again = reserve(connection, "k", token=token, mode="leased")
        assert (again.outcome, again.token, again.attempt) == ("started", token, 1)
        # as long as it was reserved for, from now on
        assert again.lease_until - first.lease_until == pytest.approx(timedelta(minutes=1), abs=timedelta(seconds=30))
        assert reserve(connection, "k", token=uuid4(), mode="leased").outcome == "in_progress"


def test_i12_the_owner_of_a_lapsed_key_is_still_its_owner(testing_db: Database) -> None:
    token = uuid4()
    connection = testing_db.connect()
    reserve(connection, "k", token=token, mode="leased")
    connection.commit()
    advance_clock(connection, timedelta(hours=1))
    connection.commit()
    assert reserve(connection, "k", token=token, mode="leased").outcome == "started"
    connection.commit()
    # ownership is that of the first call: this transaction may complete
    assert reserve(connection, "k", token=token, mode="leased").outcome == "started"
    assert complete(connection, "k", token) is True


def test_i12_atomic_reserve_repeated_in_its_transaction(db: Database) -> None:
    connection = db.connect()
    first = reserve(connection, "k")
    again = reserve(connection, "k", token=first.token)
    assert (again.outcome, again.token, again.downstream_key) == ("started", first.token, first.downstream_key)
    assert reserve(connection, "k").outcome == "in_progress"
    assert complete(connection, "k", first.token)
    connection.commit()


def test_i12_a_deferred_key_goes_on_if_nobody_has_taken_it(db: Database) -> None:
    connection = db.connect()
    owner = reserve(connection, "k", mode="leased")
    connection.commit()
    assert owner_call(connection, "defer", "k", owner.token, reason="provider hangs") is True
    connection.commit()
    assert reserve(connection, "k").outcome == "unresolved"
    assert owner_call(connection, "defer", "k", owner.token) is True
    assert complete(connection, "k", owner.token, status=201) is True
    connection.commit()
    assert connection.execute("select count(*) from idem_private.unfinished").fetchone() == (0,)


def test_i12_ownership_does_not_depend_on_a_clock_that_is_set_back(testing_db: Database) -> None:
    connection = testing_db.connect()
    advance_clock(connection, timedelta(hours=-1))
    connection.commit()
    owner = reserve(connection, "k")
    assert reserve(connection, "k", token=owner.token).outcome == "started"
    assert reserve(connection, "k").outcome == "in_progress"
    assert complete(connection, "k", owner.token)
    connection.commit()

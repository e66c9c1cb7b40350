"""I1: the effects of at most one owner commit. The unique constraint arbitrates; locks only spare the wait."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from tests.support.calls import complete, lookup, owner_call, reserve, set_policy, sqlstate_of, stored
from tests.support.database import Database, advance_clock


def test_i1_fifty_simultaneous_first_requests_have_one_effect(db: Database) -> None:
    with db.connect() as setup:
        setup.execute("create table effect (key text)")
    sessions = 50
    barrier = threading.Barrier(sessions)

    def attempt() -> str:
        with psycopg.connect(db.dsn) as connection:
            barrier.wait()
            answer = reserve(connection, "k", fingerprint=b"f")
            if answer.outcome == "started":
                connection.execute("insert into effect values ('k')")
                complete(connection, "k", answer.token, status=201)
            return str(answer.outcome)

    with ThreadPoolExecutor(sessions) as pool:
        outcomes = [future.result() for future in [pool.submit(attempt) for _ in range(sessions)]]

    assert outcomes.count("started") == 1
    assert set(outcomes) <= {"started", "in_progress", "replay"}
    with db.connect() as check:
        assert check.execute("select count(*) from effect").fetchone() == (1,)


def test_i1_without_the_lock_the_constraint_still_lets_one_owner_in(db: Database) -> None:
    """The lock is taken away; the loser then waits for the winner, and is told the truth all the same."""
    with db.connect() as setup:
        setup.execute(
            "create or replace function idem_private.lock_id(scope text, key text) returns bigint"
            " language sql volatile as 'select (random() * 9e18)::bigint'"
        )
    first, second = db.connect(), db.connect()
    answer = reserve(first, "k")
    with ThreadPoolExecutor(1) as pool:
        loser = pool.submit(reserve, second, "k")
        db.wait_until_blocked(second)
        complete(first, "k", answer.token, status=201)
        first.commit()
        assert loser.result(30).outcome == "replay"


def test_i1_a_completion_in_an_earlier_life_does_not_count(testing_db: Database) -> None:
    """Nor does it where a caller draws tokens badly, and uses the same one again."""
    connection = testing_db.connect()
    token = reserve(connection, "k", token=uuid4()).token
    complete(connection, "k", token)
    connection.commit()
    advance_clock(connection, timedelta(hours=25))
    assert reserve(connection, "k", token=token).outcome == "started"
    with pytest.raises(psycopg.Error) as caught:
        connection.commit()
    assert caught.value.sqlstate == "IK005"


def test_i1_of_twenty_attempts_at_an_expired_key_one_owns_its_new_life(testing_db: Database) -> None:
    with testing_db.connect() as first:
        answer = reserve(first, "k", fingerprint=b"old")
        complete(first, "k", answer.token, status=201)
    sessions = 20
    barrier = threading.Barrier(sessions)

    def attempt() -> tuple[str, bool]:
        with psycopg.connect(testing_db.dsn) as connection:
            advance_clock(connection, timedelta(hours=25))
            barrier.wait()
            answer = reserve(connection, "k", fingerprint=b"new")
            if answer.outcome == "started":
                return "started", complete(connection, "k", answer.token, status=202)
            return str(answer.outcome), True

    with ThreadPoolExecutor(sessions) as pool:
        outcomes = [future.result()[0] for future in [pool.submit(attempt) for _ in range(sessions)]]
    assert outcomes.count("started") == 1
    assert set(outcomes) <= {"started", "in_progress", "replay"}


def test_i1_a_lapsed_key_is_taken_over_by_one_of_twenty(testing_db: Database) -> None:
    with testing_db.connect() as first:
        set_policy(first, "again", on_lapse="retry")
        first.commit()
        reserve(first, "k", mode="leased", policy="again")
    sessions = 20
    barrier = threading.Barrier(sessions)

    def attempt() -> tuple[str, int]:
        with psycopg.connect(testing_db.dsn) as connection:
            advance_clock(connection, timedelta(minutes=2))
            barrier.wait()
            answer = reserve(connection, "k", mode="leased", policy="again")
            return str(answer.outcome), answer.attempt

    with ThreadPoolExecutor(sessions) as pool:
        answers = [future.result() for future in [pool.submit(attempt) for _ in range(sessions)]]
    assert answers.count(("started", 2)) == 1
    assert {outcome for outcome, _ in answers} <= {"started", "in_progress"}


def test_i1_started_is_never_answered_without_a_row(testing_db: Database) -> None:
    """Attempts race with the removal of the expired row that they find."""
    rounds, sessions = 100, 6
    barrier = threading.Barrier(sessions + 1)
    with testing_db.connect() as setup:
        setup.execute("create table won (key text, round int)")

    def attempt() -> None:
        with psycopg.connect(testing_db.dsn) as connection:
            for number in range(rounds):
                connection.execute("select set_config('idem.clock_offset', %s, false)", [f"{number * 48} hours"])
                barrier.wait()
                answer = reserve(connection, "k", fingerprint=str(number).encode())
                if answer.outcome == "started":
                    connection.execute("insert into won values ('k', %s)", [number])
                    complete(connection, "k", answer.token)
                connection.commit()
                assert answer.outcome in ("started", "in_progress", "replay")
                barrier.wait()

    def remove() -> None:
        with psycopg.connect(testing_db.dsn) as connection:
            for number in range(rounds):
                barrier.wait()
                # what purge will do: expired rows only, none that is locked
                connection.execute(
                    "delete from idem_private.reservation as r where (r.scope, r.key) in ("
                    " select p.scope, p.key from idem_private.reservation as p"
                    " where p.completed_at is not null and p.expires_at < now() + %s * interval '48 hours'"
                    " for update skip locked)",
                    [number],
                )
                connection.commit()
                barrier.wait()

    with ThreadPoolExecutor(sessions + 1) as pool:
        futures = [pool.submit(attempt) for _ in range(sessions)] + [pool.submit(remove)]
        for future in futures:
            future.result(120)
    with testing_db.connect() as check:
        # An owner's row in won commits together with its completion, which needs the row of the key. A round may stay
        # without an owner, where all of its attempts met the row while it was being removed.
        per_round = check.execute("select round, count(*) from won group by round").fetchall()
        assert len(per_round) > rounds / 2
        assert {owners for _, owners in per_round} == {1}


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_i1_a_row_committed_after_the_snapshot_is_a_serialization_failure(db: Database, isolation: str) -> None:
    late = db.connect(autocommit=True)
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    with db.connect() as owner:
        answer = reserve(owner, "k")
        complete(owner, "k", answer.token, status=201)
    with pytest.raises(psycopg.errors.SerializationFailure):
        reserve(late, "k")
    late.execute("rollback")
    assert reserve(late, "k").outcome == "replay"


@pytest.mark.parametrize("call", ["complete", "release", "defer", "extend"])
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_i1_an_owner_whose_snapshot_is_older_than_its_row_is_told_to_retry(
    db: Database, call: str, isolation: str
) -> None:
    late = db.connect(autocommit=True)
    late.execute(f"begin isolation level {isolation}")
    late.execute("select 1")
    assert sqlstate_of(late, call, scope="shop", key="k", token=uuid4()) == "IK003"
    with db.connect() as owner:
        token = reserve(owner, "k", mode="leased").token
    assert sqlstate_of(late, call, scope="shop", key="k", token=token) == "40001"
    late.execute("rollback")
    assert sqlstate_of(late, call, scope="shop", key="k", token=token) is None
    with db.connect() as check:
        assert check.execute("select count(*) from idem_private.reservation").fetchone() == (
            0 if call == "release" else 1,
        )


def test_i1_an_unfinished_atomic_reservation_cannot_commit(db: Database) -> None:
    connection = db.connect()
    reserve(connection, "k")
    with pytest.raises(psycopg.Error) as caught:
        connection.commit()
    assert caught.value.sqlstate == "IK005"
    assert lookup(connection, "k").outcome == "absent"


def test_i1_an_unfinished_atomic_reservation_cannot_be_prepared(db: Database) -> None:
    connection = db.connect(autocommit=True)
    connection.execute("begin")
    reserve(connection, "k")
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("prepare transaction 'unfinished'")
    assert caught.value.sqlstate == "IK005"


@pytest.mark.parametrize(
    "statement",
    [
        "select from idem.reserve('shop', 'k')",
        "do $$ begin perform idem.reserve('shop', 'k'); end $$",
        "do $$ begin set constraints all immediate; perform idem.reserve('shop', 'k'); end $$",
        "do $$ begin perform idem.reserve('shop', 'k'); commit; end $$",
        "do $$ begin set constraints all immediate; perform idem.reserve('shop', 'k'); commit; end $$",
        "begin; select idem.reserve('shop', 'k'); commit",
        "begin; set constraints all immediate; select idem.reserve('shop', 'k'); commit",
    ],
)
def test_i1_a_reservation_whose_statement_is_its_transaction_cannot_commit(db: Database, statement: str) -> None:
    """Reserve and commit within one statement of the client, which is where the check cannot go by the time."""
    connection = db.connect(autocommit=True)
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(statement)
    assert caught.value.sqlstate == "IK005"
    connection.rollback()
    assert stored(connection, "k") is None


def test_i1_a_prepared_transaction_holds_its_key_until_it_is_decided(db: Database) -> None:
    connection = db.connect(autocommit=True)
    connection.execute("begin")
    answer = reserve(connection, "k")
    complete(connection, "k", answer.token, status=201)
    connection.execute("prepare transaction 'finished'")
    assert reserve(connection, "k").outcome == "in_progress"
    connection.execute("commit prepared 'finished'")
    assert reserve(connection, "k").outcome == "replay"


def test_i1_where_the_commit_check_did_not_run_the_row_is_unresolved_even_under_retry(db: Database) -> None:
    with db.connect() as connection:
        set_policy(connection, "again", on_lapse="retry")
        connection.execute("set session_replication_role = replica")
        reserve(connection, "k", policy="again")
    with db.connect() as connection:
        assert reserve(connection, "k", policy="again").outcome == "unresolved"
        assert lookup(connection, "k").outcome == "lapsed"


def test_i1_ids_of_a_restored_database_mean_nothing(db: Database) -> None:
    """A row whose owner had, on another server, the id that the present transaction has here."""
    with db.connect() as owner:
        leased = reserve(owner, "k", mode="leased")
    connection = db.connect()
    connection.execute(
        "update idem_private.reservation set owner_xid = pg_current_xact_id(), owned_at = now() - interval '1 minute'"
    )
    assert complete(connection, "k", leased.token, status=201)
    connection.rollback()
    # the same id, taken in this transaction, is the misuse that IK004 is for
    connection.execute("update idem_private.reservation set owner_xid = pg_current_xact_id(), owned_at = now()")
    assert sqlstate_of(connection, "complete", scope="shop", key="k", token=uuid4()) == "IK002"
    assert sqlstate_of(connection, "complete", scope="shop", key="k", token=leased.token) == "IK004"


def test_i1_a_rolled_back_savepoint_frees_the_key_at_once(db: Database) -> None:
    connection, other = db.connect(), db.connect(autocommit=True)
    connection.execute("savepoint before")
    reserve(connection, "k")
    assert reserve(other, "k").outcome == "in_progress"
    connection.execute("rollback to before")
    other.execute("begin")
    assert reserve(other, "k").outcome == "started"
    other.execute("rollback")
    connection.commit()
    assert stored(connection, "k") is None


def nothing(connection: psycopg.Connection) -> None:
    """No row before."""


def lapsed(connection: psycopg.Connection) -> None:
    reserve(connection, "k", mode="leased", policy="again")
    advance_clock(connection, timedelta(minutes=2))


def released(connection: psycopg.Connection) -> None:
    token = reserve(connection, "k", mode="leased", policy="again").token
    owner_call(connection, "checkpoint", "k", token, recovery_point="charged")
    owner_call(connection, "release", "k", token)


def expired(connection: psycopg.Connection) -> None:
    token = reserve(connection, "k", mode="leased", policy="again").token
    complete(connection, "k", token)
    advance_clock(connection, timedelta(hours=25))


@pytest.mark.parametrize("state", [nothing, lapsed, released, expired], ids=lambda state: state.__name__)
def test_i1_a_leased_key_is_not_completed_by_the_transaction_that_took_it(
    testing_db: Database, state: Callable[[psycopg.Connection], None]
) -> None:
    connection = testing_db.connect(autocommit=True)
    set_policy(connection, "again", on_lapse="retry")
    state(connection)
    with connection.transaction():
        owner = reserve(connection, "k", mode="leased", policy="again")
        assert owner.outcome == "started"
        assert sqlstate_of(connection, "complete", scope="shop", key="k", token=owner.token) == "IK004"
    assert complete(connection, "k", owner.token) is True


@pytest.mark.parametrize("state", [nothing, lapsed, released, expired], ids=lambda state: state.__name__)
def test_i1_immediate_constraints_do_not_stop_an_atomic_reserve(
    testing_db: Database, state: Callable[[psycopg.Connection], None]
) -> None:
    connection = testing_db.connect(autocommit=True)
    set_policy(connection, "again", on_lapse="retry")
    state(connection)
    with connection.transaction():
        connection.execute("set constraints all immediate")
        owner = reserve(connection, "k", policy="again")
        assert owner.outcome == "started"
        assert complete(connection, "k", owner.token) is True


def test_i1_immediate_constraints_do_not_stop_the_next_life_either(testing_db: Database) -> None:
    connection = testing_db.connect(autocommit=True)
    for _ in range(2):
        with connection.transaction():
            connection.execute("set constraints all immediate")
            owner = reserve(connection, "k")
            assert owner.outcome == "started"
            assert complete(connection, "k", owner.token) is True
        advance_clock(connection, timedelta(hours=25))


def test_i1_what_another_reserved_since_is_not_of_this_transaction(db: Database) -> None:
    connection, other = db.connect(), db.connect()
    connection.execute("create temp table work ()")
    token = reserve(other, "k", mode="leased").token
    other.commit()
    assert complete(connection, "k", token) is True
    connection.commit()

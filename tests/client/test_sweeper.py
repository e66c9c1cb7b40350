"""A sweeper settles what owners have left behind, and nothing of it is forgotten where it cannot."""

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from pyidem import AsyncIdem, AsyncSweeper, Idem, NoSuchPolicy, Sweeper, Swept, WrongMode
from tests.client.flavours import Client, OpenClient
from tests.client.resolvers import SHARED, key_of, lapse, resolver_of, sweeper_of
from tests.client.test_heartbeat import lease_until, no_thread_beats, running_tasks
from tests.support.waiting import Background, wait_until

Count = Callable[[str], int]
SHORT = timedelta(milliseconds=300)
BOTH = pytest.mark.parametrize("name", ["sync-pool", "async-pool"])


@pytest.fixture(params=SHARED)
def client(request: pytest.FixtureRequest, open_client: OpenClient) -> Client:
    """Every flavour of the client whose source has more than one connection."""
    return open_client(request.param)


def completed(_: Any) -> str:
    return "complete"


def fail(_: Any) -> None:
    raise ConnectionError("the password is hunter2")


def test_it_settles_what_has_lapsed(client: Client, scope: str, observer: psycopg.Connection, orders: Count) -> None:
    seen = []

    def decide(op: Any) -> str:
        seen.append((op.key, op.started, op.attempt, op.state, op.recovery_point, op.lapsed.claims, op.lapsed.reason))
        return "complete"

    for key in ("a", "b"):
        lapse(observer, scope, key, state={"of": key})

    assert client.finish(sweeper_of(client, decide, scope=scope).run_once()) == Swept(completed=2)
    assert seen == [(key, True, 1, {"of": key}, None, 1, "gone") for key in ("a", "b")]
    with client.leased(scope, "a") as retry:
        assert retry.outcome == "replay"
    assert retry.response.status == 200
    assert orders(f"{scope}/a") == orders(f"{scope}/b") == 1
    assert client.finish(sweeper_of(client, decide, scope=scope).run_once()) == Swept()


def test_first_attempt_takeover_and_sweep_share_one_function(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    seen = []

    def first_asks_in_vain(op: Any) -> Any:
        seen.append((op.attempt, op.state, op.downstream_key()))
        return "complete" if len(seen) == 3 else timedelta(milliseconds=1)

    observer.execute("insert into idem.policies (name, on_lapse) values (%s, 'retry')", [scope])
    resolver = resolver_of(client, first_asks_in_vain)
    for _ in range(2):
        with client.leased(scope, "k", policy=scope, state=[7]) as op:
            client.finish(resolver(op))
    wait_until(lambda: key_of(observer, scope)["claim_after"] < now(observer), "the delay to end")
    assert client.finish(sweeper_of(client, first_asks_in_vain, policy=scope).run_once()) == Swept(completed=1)

    downstream_key = client.downstream_key(scope, "k")
    assert seen == [(1, [7], downstream_key), (2, [7], downstream_key), (2, [7], downstream_key)]


def test_it_goes_on_from_the_last_checkpoint(client: Client, scope: str) -> None:
    seen = []

    def decide(op: Any) -> str:
        seen.append((op.recovery_point, op.state))
        return "complete"

    with client.leased(scope, "k", state={"charge": 7}) as op:
        with client.block(op.transaction) as connection:
            client.insert(connection, scope)
            op.checkpoint("charged", {"charge": 7, "id": "ch_1"})
        client.finish(op.defer())
    client.finish(sweeper_of(client, decide, scope=scope).run_once())
    assert seen == [("charged", {"charge": 7, "id": "ch_1"})]


def test_what_did_not_happen_may_run_again(client: Client, scope: str, observer: psycopg.Connection) -> None:
    lapse(observer, scope)
    assert client.finish(sweeper_of(client, lambda _: "release", scope=scope).run_once()) == Swept(released=1)
    assert client.lookup(scope, "k").outcome == "absent"


def test_what_is_not_known_yet_waits_as_long_as_the_resolver_says(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    lapse(observer, scope)
    sweeper = sweeper_of(client, lambda _: timedelta(hours=2), scope=scope)
    assert client.finish(sweeper.run_once()) == Swept(deferred=1)
    key = key_of(observer, scope)
    assert (key["outcome"], key["reason"]) == ("lapsed", "asked in vain")
    assert timedelta(hours=1) < key["claim_after"] - now(observer) <= timedelta(hours=2)
    assert client.finish(sweeper.run_once()) == Swept()


def test_a_resolver_that_raises_is_asked_again_later_and_its_words_stay_out_of_the_database(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    lapse(observer, scope)
    sweeper = sweeper_of(client, fail, scope=scope)
    assert client.finish(sweeper.run_once()) == Swept(failed=1)
    key = key_of(observer, scope)
    assert (key["outcome"], key["claims"], key["reason"]) == ("lapsed", 1, "ConnectionError")
    assert timedelta(0) < key["claim_after"] - now(observer) <= timedelta(minutes=1)
    assert client.finish(sweeper.run_once()) == Swept()


@BOTH
def test_the_delay_grows_with_each_claim_until_a_person_has_to_look(
    name: str, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client(name)
    observer.execute("insert into idem.policies (name, max_claims) values (%s, 3)", [scope])
    lapse(observer, scope, policy=scope)
    sweeper, delays = sweeper_of(client, fail, scope=scope), []
    for claims in (1, 2, 3):
        assert client.finish(sweeper.run_once()) == Swept(failed=1)
        key = key_of(observer, scope)
        assert key["claims"] == claims
        delays.append(key["claim_after"] - now(observer))
        put_off(observer, scope)
    assert delays == sorted(delays)
    assert client.finish(sweeper.run_once()) == Swept()
    assert key_of(observer, scope)["outcome"] == "lapsed"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (psycopg.errors.UniqueViolation("the secret"), "UniqueViolation (SQLSTATE 23505)"),
        (type("HTTPStatusError", (Exception,), {"response": type("Response", (), {"status_code": 503})}), None),
    ],
)
def test_the_reason_says_what_is_safe_to_say(
    error: Any, reason: str | None, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    def decide(_: Any) -> None:
        raise error

    lapse(observer, scope)
    sweeper_of(open_client("sync-pool"), decide, scope=scope).run_once()
    assert key_of(observer, scope)["reason"] == (reason or "HTTPStatusError (HTTP status 503)")


def test_a_resolver_that_ends_without_an_answer_is_asked_again_later(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    lapse(observer, scope)
    assert client.finish(sweeper_of(client, lambda _: None, scope=scope).run_once()) == Swept(failed=1)
    key = key_of(observer, scope)
    assert (key["outcome"], key["reason"]) == ("lapsed", "the resolver ended without an answer")
    assert key["claim_after"] > now(observer)


def test_one_bad_key_does_not_stop_the_others(
    open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client("sync-pool")
    for number in range(100):
        lapse(observer, scope, str(number))
    sweeper = sweeper_of(client, lambda op: fail(op) if op.key == "50" else "complete", scope=scope)
    assert sweeper.run_once() == Swept(completed=99, failed=1)
    left = observer.execute("select key from idem.keys where scope = %s and outcome = 'lapsed'", [scope]).fetchall()
    assert left == [("50",)]


def test_while_the_resolver_takes_its_time_the_key_is_kept(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    lapse(observer, scope)
    go_on = threading.Event()
    sweeper = sweeper_of(client, waiting_for(client, go_on), scope=scope, lease=SHORT)
    sweep = Background(lambda: client.finish(sweeper.run_once()))
    wait_until(lambda: client.lookup(scope, "k").outcome == "in_progress", "the claim")
    claimed_until = lease_until(observer, scope)
    wait_until(lambda: lease_until(observer, scope) > claimed_until + SHORT, "the lease to outlive its first length")
    assert observer.execute("select * from idem.claim_lapsed(scope => %s)", [scope]).fetchall() == []
    go_on.set()
    assert sweep.result() == Swept(completed=1)
    wait_until(no_thread_beats, "the heartbeat to end")
    if client.asynchronous:
        assert client.finish(running_tasks()) == []


def test_a_resolver_that_hangs_is_given_up_and_can_store_nothing_any_more(
    client: Client, scope: str, observer: psycopg.Connection, orders: Count
) -> None:
    lapse(observer, scope, "hangs")
    go_on, came_back = threading.Event(), []

    def decide(op: Any) -> Any:
        if client.asynchronous:
            return asyncio.sleep(3600)
        go_on.wait(30)
        try:
            op.complete(200)
        except WrongMode as error:
            came_back.append(error)
            raise
        return None

    sweeper = sweeper_of(client, decide, scope=scope, timeout=timedelta(milliseconds=200))
    assert client.finish(sweeper.run_once()) == Swept(failed=1)
    key = key_of(observer, scope, "hangs")
    assert (key["outcome"], key["reason"]) == ("lapsed", "the resolver did not end within 0.2 s")
    go_on.set()
    if not client.asynchronous:
        wait_until(lambda: len(came_back) == 1, "the resolver to come back")
    assert client.lookup(scope, "hangs").outcome == "lapsed"
    assert orders(f"{scope}/hangs") == 0


def test_a_late_resolver_cannot_bring_the_heartbeat_back(
    open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client("sync-pool", pool_size=4)
    lapse(observer, scope)
    waiting = "select exists (select from pg_stat_activity where %s = any (pg_blocking_pids(pid)))"

    def late(op: Any) -> None:
        with op.transaction() as connection:
            connection.execute("select from idem_private.reservation where scope = %s for update", [scope])
            pid = [connection.info.backend_pid]
            wait_until(lambda: observer.execute(waiting, pid).fetchone() == (True,), "the sweeper to give up")

    sweeper: Any = Sweeper(client.idem, late, scope=scope, timeout=timedelta(milliseconds=100))
    assert sweeper.run_once() == Swept(failed=1)
    wait_until(lambda: "pyidem-resolver" not in threads(), "the resolver to end")
    assert "pyidem-heartbeat" not in threads()
    assert key_of(observer, scope)["outcome"] == "lapsed"


def test_what_the_resolver_does_after_the_commit_changes_nothing(
    client: Client, scope: str, observer: psycopg.Connection
) -> None:
    lapse(observer, scope)
    resolver = resolver_of(client, completed)

    def fails_late(op: Any) -> None:
        resolver(op)
        raise ZeroDivisionError

    async def fails_late_async(op: Any) -> None:
        await resolver(op)
        raise ZeroDivisionError

    kind: Any = AsyncSweeper if client.asynchronous else Sweeper
    sweeper = kind(client.idem, fails_late_async if client.asynchronous else fails_late, scope=scope)
    assert client.finish(sweeper.run_once()) == Swept(completed=1)


def test_a_claim_that_another_has_taken_is_lost(client: Client, scope: str, observer: psycopg.Connection) -> None:
    lapse(observer, scope)

    def decide(op: Any) -> str:
        observer.execute("update idem_private.reservation set token = gen_random_uuid() where scope = %s", [op.scope])
        return "complete"

    assert client.finish(sweeper_of(client, decide, scope=scope).run_once()) == Swept(lost=1)
    assert client.lookup(scope, "k").outcome == "in_progress"


def test_only_what_was_asked_for_is_claimed(client: Client, scope: str, observer: psycopg.Connection) -> None:
    observer.execute("insert into idem.policies (name) values (%s)", [scope])
    lapse(observer, scope, "mine", policy=scope)
    lapse(observer, scope, "not mine")
    lapse(observer, f"{scope}-other", "other", policy=scope)
    assert client.finish(sweeper_of(client, completed, policy=scope, scope=scope).run_once()) == Swept(completed=1)
    assert client.lookup(scope, "mine").outcome == "completed"
    assert client.finish(sweeper_of(client, completed, policy=scope).run_once()) == Swept(completed=1)
    assert client.lookup(scope, "not mine").outcome == "lapsed"


def test_a_limit_bounds_one_sweep(client: Client, scope: str, observer: psycopg.Connection) -> None:
    for number in range(5):
        lapse(observer, scope, str(number))
    sweeper = sweeper_of(client, completed, scope=scope)
    assert client.finish(sweeper.run_once(limit=3)) == Swept(completed=3)
    assert client.finish(sweeper.run_once(limit=3)) == Swept(completed=2)


@BOTH
def test_several_keys_are_settled_at_a_time(
    name: str, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client(name, pool_size=10)
    barrier = threading.Barrier(3)

    def meeting() -> str:
        barrier.wait(30)
        return "complete"

    def decide(_: Any) -> Any:
        return asyncio.to_thread(meeting) if client.asynchronous else meeting()

    for number in range(3):
        lapse(observer, scope, str(number))
    assert client.finish(sweeper_of(client, decide, scope=scope, concurrency=3).run_once()) == Swept(completed=3)


@BOTH
def test_it_goes_on_until_it_is_stopped_and_ends_what_it_has_begun(
    name: str, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client(name)
    go_on = threading.Event()
    go_on.set()
    sweeper = sweeper_of(client, waiting_for(client, go_on), scope=scope)
    loop = Background(lambda: client.finish(sweeper.run(timedelta(milliseconds=20))))
    for key in ("a", "b"):
        lapse(observer, scope, key)
        wait_until(lambda key=key: client.lookup(scope, key).outcome == "completed", f"{key} to be settled")
    go_on.clear()
    lapse(observer, scope, "c")
    wait_until(lambda: client.lookup(scope, "c").outcome == "in_progress", "the claim")
    sweeper.stop()
    lapse(observer, scope, "d")
    assert not loop.done()
    go_on.set()
    assert loop.result() == Swept(completed=3)
    assert (client.lookup(scope, "c").outcome, client.lookup(scope, "d").outcome) == ("completed", "lapsed")


@BOTH
def test_a_pause_ends_when_it_is_stopped(name: str, open_client: OpenClient, scope: str) -> None:
    client = open_client(name)
    paused = threading.Event()

    class Pausing(AsyncSweeper if client.asynchronous else Sweeper):  # type: ignore[misc]
        def _pause(self, seconds: float) -> Any:
            paused.set()
            return super()._pause(seconds)

    sweeper = Pausing(client.idem, resolver_of(client, completed), scope=scope)
    loop = Background(lambda: client.finish(sweeper.run(timedelta(hours=1))))
    assert paused.wait(30)
    sweeper.stop()
    assert loop.result() == Swept()


def test_it_waits_longer_each_time_while_the_database_cannot_be_reached(
    open_client: OpenClient, scope: str, observer: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client("sync-pool")
    pauses: list[float] = []

    class Recording(Sweeper[Any]):
        def _pause(self, seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 12:
                self.stop()

    def connect() -> psycopg.Connection:
        return psycopg.connect(client.dsn if len(pauses) >= 9 else "host=127.0.0.1 port=1")

    lapse(observer, scope)
    sweeper = Recording(Idem(connect), resolver_of(client, completed), scope=scope)
    assert sweeper.run(timedelta(seconds=10)) == Swept(completed=1)
    assert all(5 <= pause <= 60 for pause in pauses[:9])
    assert max(pauses[:2]) < max(pauses[3:9])
    assert pauses[9:] == [10, 10, 10]
    unreachable = [record for record in caplog.records if record.message == "sweeper.unreachable"]
    assert len(unreachable) == 9


@BOTH
def test_what_will_not_pass_by_itself_is_raised(name: str, open_client: OpenClient, scope: str) -> None:
    client = open_client(name)
    with pytest.raises(NoSuchPolicy):
        client.finish(sweeper_of(client, completed, policy=scope).run())


@BOTH
def test_a_lost_connection_under_the_resolver_costs_one_try(
    name: str, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client(name)
    lapse(observer, scope)

    def decide(_: Any) -> str:
        observer.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
        return "complete"

    assert client.finish(sweeper_of(client, decide, scope=scope).run_once()).claimed == 1
    assert key_of(observer, scope)["outcome"] in ("completed", "lapsed", "in_progress")


def test_every_key_is_logged_without_tokens_and_states(
    client: Client, scope: str, observer: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    for key in "ab":
        lapse(observer, scope, key, state="the secret")
    with caplog.at_level(logging.INFO, "pyidem"):
        sweeper = sweeper_of(client, lambda op: None if op.key == "b" else "complete", scope=scope)
        assert client.finish(sweeper.run_once()) == Swept(completed=1, failed=1)
    about = {"idem_scope": scope, "idem_policy": "default", "idem_attempt": 1, "idem_claims": 1}
    reason = "the resolver ended without an answer"
    for event, extra in (
        ("sweeper.completed", about | {"idem_key": "a"}),
        ("sweeper.failed", about | {"idem_key": "b", "idem_reason": reason}),
    ):
        (record,) = [each for each in caplog.records if each.message == event]
        assert extra.items() <= vars(record).items()
        assert vars(record)["idem_seconds"] >= 0
    assert "the secret" not in str([vars(record) for record in caplog.records])


@BOTH
def test_the_hook_for_decisions_is_told_of_every_key(
    name: str, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client, told = open_client(name), []

    def hook(decision: Any) -> None:
        told.append((decision.name, decision.scope, decision.outcome, decision.attempt))
        raise ZeroDivisionError

    client.idem = (AsyncIdem if client.asynchronous else Idem)(client.origin, on_decision=hook)
    lapse(observer, scope)
    assert client.finish(sweeper_of(client, completed, scope=scope).run_once()) == Swept(completed=1)
    assert told == [("complete", scope, "stored", None), ("sweep", scope, "completed", 1)]


@BOTH
@pytest.mark.parametrize(
    "case",
    [
        (False, 503, Swept(completed=1), "completed"),
        (True, 503, Swept(deferred=1), "lapsed"),
        (True, 429, Swept(deferred=1), "lapsed"),
        (True, 404, Swept(completed=1), "completed"),
    ],
)
def test_of_requests_the_policy_judges_the_answer(
    case: tuple[bool, int, Swept, str], name: str, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    http, status, swept, left = case
    client = open_client(name)
    lapse(observer, scope)

    def answer(op: Any) -> None:
        op.complete(status)

    assert client.finish(sweeper_of(client, answer, scope=scope, http=http).run_once()) == swept
    assert client.lookup(scope, "k").outcome == left


@BOTH
def test_cancelled_it_defers_what_it_has_claimed(
    name: str, open_client: OpenClient, scope: str, observer: psycopg.Connection
) -> None:
    client = open_client(name)
    if not client.asynchronous:
        interrupted = sweeper_of(client, interrupt, scope=scope)
        lapse(observer, scope)
        with pytest.raises(KeyboardInterrupt):
            interrupted.run_once()
        assert key_of(observer, scope)["reason"] == "KeyboardInterrupt"
        return

    async def cancel() -> None:
        inside = asyncio.Event()

        async def resolver(_: Any) -> None:
            inside.set()
            await asyncio.sleep(3600)

        task = asyncio.ensure_future(AsyncSweeper(client.idem, resolver, scope=scope).run())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    lapse(observer, scope)
    client.finish(cancel())
    key = key_of(observer, scope)
    assert (key["outcome"], key["reason"]) == ("lapsed", "CancelledError")


@pytest.mark.parametrize("name", ["sync-connection", "async-connection"])
def test_a_single_connection_has_none_to_spare_for_the_heartbeat(name: str, open_client: OpenClient) -> None:
    with pytest.raises(TypeError, match="second connection"):
        sweeper_of(open_client(name), completed)


@BOTH
def test_a_resolver_of_the_other_flavour_is_refused(name: str, open_client: OpenClient) -> None:
    client = open_client(name)
    kind: Any = AsyncSweeper if client.asynchronous else Sweeper

    async def asynchronous(_: Any) -> None: ...

    with pytest.raises(TypeError, match="async"):
        kind(client.idem, completed if client.asynchronous else asynchronous)


def test_none_at_a_time_is_refused(open_client: OpenClient) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        sweeper_of(open_client("sync-pool"), completed, concurrency=0)


def waiting_for(client: Client, go_on: threading.Event) -> Callable[[Any], Any]:
    """Return what completes as soon as it may."""

    def wait() -> str:
        assert go_on.wait(30)
        return "complete"

    return lambda _: asyncio.to_thread(wait) if client.asynchronous else wait()


def interrupt(_: Any) -> None:
    raise KeyboardInterrupt


def now(observer: psycopg.Connection) -> Any:
    row = observer.execute("select clock_timestamp()").fetchone()
    assert row is not None
    return row[0]


def put_off(observer: psycopg.Connection, scope: str) -> None:
    """Let the delay of a key be over."""
    observer.execute("update idem_private.unfinished set claim_after = now() where scope = %s", [scope])


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate()]

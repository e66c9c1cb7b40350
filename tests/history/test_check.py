"""The check accuses nobody of a sound history, and names each promise that a history breaks."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.history.check import Remains, judge
from tests.history.record import FAIL, OK, UNKNOWN, Call, History

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
START = 1_800_000_000 * SECOND
KEY = "kept-1"
BODY = b"a.1 done"


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(microseconds=START + round(seconds * SECOND))


def micros(seconds: float) -> int:
    return START + round(seconds * SECOND)


def call(op: str, name: str, seconds: float, answer: dict[str, Any], *, ended: str = OK, **given: Any) -> Call:
    """A call that took a tenth of a second."""
    return Call(op, name, round(seconds * 10), round(seconds * 10) + 1, ended, {"key": KEY, **given}, answer)


def effect(op: str, life: float, **other: Any) -> Any:
    columns = {
        "op": op,
        "key": KEY,
        "kind": "leased",
        "life": at(life),
        "attempt": 1,
        "token": "t1",
        "fingerprint": "one",
        "status": 201,
        "headers": [["X", "1"]],
        "body": BODY,
        "transaction_began": at(life + 1),
        "work_began": at(life + 1),
        "completed": None,
    }
    return SimpleNamespace(**columns | other)


def stored(life: float, **other: Any) -> Any:
    columns = {
        "key": KEY,
        "created_at": at(life),
        "completed_at": at(life + 1),
        "expired_at": None,
        "leased": True,
        "status": 201,
        "headers": [["X", "1"]],
        "body": BODY,
    }
    return SimpleNamespace(**columns | other)


def reserved(op: str, seconds: float, *, token: str = "t1", attempt: int = 1, life: float = 0) -> Call:
    answer = {"outcome": "started", "attempt": attempt, "created_at": micros(life), "downstream_key": "d"}
    return call(op, "reserve", seconds, answer, mode="leased", token=token, clock=micros(life) - 1, fingerprint="one")


def owner(op: str, name: str, seconds: float, *, token: str = "t1", attempt: int = 1, ended: str = OK) -> Call:
    return call(op, name, seconds, {}, ended=ended, token=token, attempt=attempt, life=micros(0))


REPLAY = {"outcome": "replay", "status": 201, "headers": [["X", "1"]], "body": BODY.hex()}
SOUND = [reserved("a.1", 0), owner("a.1", "commit", 1), call("b.1", "reserve", 2, REPLAY, fingerprint="one")]


def found(calls: list[Call], effects: list[Any], rows: list[Any], unfinished: set[str] | None = None) -> set[str]:
    """The promises that are said to be broken."""
    remains = Remains(effects, rows, unfinished or set(), set(), at(10))
    return {violation.promise for violation in judge(History(calls), remains)}


def test_a_sound_history_is_not_accused() -> None:
    assert found(SOUND, [effect("a.1", 0)], [stored(0)]) == set()


def test_a_lost_acknowledgement_may_mean_either() -> None:
    calls = [reserved("a.1", 0), owner("a.1", "commit", 1, ended=UNKNOWN)]
    assert found(calls, [effect("a.1", 0)], [stored(0)]) == set()
    assert found(calls, [], [stored(0, completed_at=None)], {KEY}) == set()


@pytest.mark.parametrize("ended", [OK, UNKNOWN])
def test_what_its_owner_releases_may_go(ended: str) -> None:
    assert found([reserved("a.1", 0), owner("a.1", "release", 1, ended=ended)], [], []) == set()


def test_the_next_life_may_begin_when_the_last_is_over() -> None:
    again = effect("a.2", 3602, body=b"a.2 ")
    calls = [*SOUND, reserved("a.2", 3602, life=3602), replace(owner("a.2", "commit", 3603), given={"key": KEY})]
    assert found(calls, [effect("a.1", 0), again], [stored(3602, body=b"a.2 ")]) == set()


def test_retention_is_counted_from_the_completion_where_the_work_came_after_it() -> None:
    decided = effect("a.1", 0, kind="operator", work_began=at(1800), completed=at(1799))
    again = effect("a.2", 3600 + 1799, body=b"a.2 ", work_began=at(3600 + 1799.5))
    calls = [
        call("a.1", "resolve", 1799, {"done": True}, action="complete", attempt=1, life=micros(0)),
        replace(owner("a.2", "commit", 5400), given={"key": KEY}),
    ]
    remains = Remains([decided, again], [stored(5399, body=b"a.2 ")], set(), {"a.1"}, at(5400))
    assert judge(History(calls), remains) == []
    early = replace(remains, effects=[decided, effect("a.2", 3600 + 1798, body=b"a.2 ")])
    assert "one effect" in {violation.promise for violation in judge(History(calls), early)}


def another_effect(_: list[Call], effects: list[Any], __: list[Any]) -> None:
    effects.append(effect("c.1", 0))


def an_early_life(_: list[Call], effects: list[Any], __: list[Any]) -> None:
    effects.append(effect("c.1", 3599))


def a_second_start(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(reserved("c.1", 2, token="t3", life=5))


def another_byte(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "reserve", 3, REPLAY | {"body": (BODY + b".").hex()}))


def another_header(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "reserve", 3, REPLAY | {"headers": [["X", "2"]]}))


def an_answer_to_another_request(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "reserve", 3, REPLAY, fingerprint="other"))


def an_answer_of_nothing(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "lookup", 3, REPLAY | {"outcome": "completed", "body": b"x.9 ".hex()}))


def an_early_answer(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "reserve", 0.5, REPLAY))


def an_old_answer(calls: list[Call], effects: list[Any], rows: list[Any]) -> None:
    effects.append(effect("c.1", 3602, body=b"c.1 "))
    rows[0] = stored(3602, body=b"c.1 ")
    calls += [replace(owner("c.1", "commit", 3603), given={"key": KEY}), call("d.1", "reserve", 3604, REPLAY)]


def lost_work(_: list[Call], effects: list[Any], __: list[Any]) -> None:
    effects.clear()


def refused_work(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls[1] = replace(calls[1], ended=FAIL)


def a_stale_owner(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.insert(1, reserved("c.1", 0.5, token="t2", attempt=2))


def an_attempt_twice(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls += [reserved("c.1", 3, token="t2", attempt=1)]


def a_forgotten_outcome(calls: list[Call], effects: list[Any], rows: list[Any]) -> None:
    del calls[1:], effects[:], rows[:]


def a_forgotten_attempt(calls: list[Call], effects: list[Any], rows: list[Any]) -> None:
    """The row goes by a release, though the life is at its second attempt."""
    del calls[1:], effects[:], rows[:]
    calls += [reserved("c.1", 2, token="t2", attempt=2), owner("c.1", "release", 3, token="t2", attempt=2)]


def another_stored_answer(_: list[Call], __: list[Any], rows: list[Any]) -> None:
    rows[0] = stored(0, status=500)


def work_without_a_key(_: list[Call], __: list[Any], rows: list[Any]) -> None:
    rows.clear()


def an_unfinished_atomic_row(_: list[Call], __: list[Any], rows: list[Any]) -> None:
    rows.append(stored(0, key="kept-2", completed_at=None, leased=False, body=None))


def a_decision_off_the_record(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "resolve", 3, {"done": True}, action="retry", attempt=1, life=micros(0)))


def a_time_before_the_call(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls[0] = replace(calls[0], given=calls[0].given | {"clock": micros(0.1)})


def another_downstream_key(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "claim", 3, {"rows": [{"key": KEY, "downstream_key": "e", "created_at": micros(0),
                                                      "token": "t2", "attempt": 1}]}))  # fmt: skip


def a_token_that_another_has(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "claim", 3, {"rows": [{"key": KEY, "downstream_key": "d", "created_at": micros(0),
                                                      "token": "t1", "attempt": 1}]}))  # fmt: skip


def a_deadlock(calls: list[Call], _: list[Any], __: list[Any]) -> None:
    calls.append(call("c.1", "reserve", 3, {"error": "40P01"}, ended=FAIL))


@pytest.mark.parametrize(
    ("plant", "promise"),
    [
        (another_effect, "one effect"),
        (an_early_life, "one effect"),
        (a_second_start, "started again"),
        (another_byte, "answer"),
        (another_header, "answer"),
        (an_answer_to_another_request, "answer"),
        (an_answer_of_nothing, "answer"),
        (an_early_answer, "before commit"),
        (an_old_answer, "old answer"),
        (lost_work, "acknowledged"),
        (refused_work, "refused"),
        (a_stale_owner, "stale owner"),
        (a_token_that_another_has, "own token"),
        (an_attempt_twice, "attempt"),
        (a_forgotten_outcome, "forgotten"),
        (a_forgotten_attempt, "forgotten"),
        (another_stored_answer, "stored"),
        (work_without_a_key, "stored"),
        (an_unfinished_atomic_row, "stored"),
        (a_decision_off_the_record, "on record"),
        (a_time_before_the_call, "clock"),
        (another_downstream_key, "downstream key"),
        (a_deadlock, "error"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_broken_promise_is_named(plant: Callable[[list[Call], list[Any], list[Any]], None], promise: str) -> None:
    calls, effects, rows = list(SOUND), [effect("a.1", 0)], [stored(0)]
    plant(calls, effects, rows)
    assert promise in found(calls, effects, rows)

"""All languages at the same keys at once: one effect for each key, and one answer, whoever asks.

`make conformance` makes it 10,000 attempts at 1,000 keys.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from tests.conformance.conftest import Theatre
from tests.conformance.languages import Language, chosen
from tests.conformance.player import PATIENCE_SECONDS, Player

ATTEMPTS = int(os.environ.get("CONFORMANCE_ATTEMPTS", "600"))
KEYS = int(os.environ.get("CONFORMANCE_KEYS", "60"))
SCOPE = "race"
REPLAYED = ["Idempotency-Replayed", "true"]


@dataclass
class Runner:
    """One language in the race, and what it was answered by key."""

    player: Player
    number: int
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    attempts: int = 0

    @property
    def name(self) -> str:
        """The name of its language."""
        return self.player.language.name

    def attempt(self, key: str) -> int:
        """Ask once, and return the status. Each language writes the same request in its own way."""
        body = [
            json.dumps({"order": key, "amount": 500}),
            json.dumps({"amount": 500, "order": key}, indent=self.number),
            json.dumps({"order": key, "amount": 500}).replace("key", r"\u006bey", 1),
        ][self.number % 3]
        header = f'"{key}"' if self.number % 2 else key
        answer = self.player.do(
            do="refund", session="race", scope=SCOPE, key_header=header, body={"bytes": body.encode().hex()}
        )
        self.answers[key].append(answer)
        self.attempts += 1
        return int(answer["status"])

    def settle(self, key: str) -> None:
        """Ask until there is an answer that is not told to wait."""
        while self.attempt(key) == 409:
            pass


@pytest.fixture
def runners(prepared: Callable[[Language], Language], theatre: Theatre) -> Iterator[list[Runner]]:
    languages = [prepared(language) for language in chosen()]
    with ExitStack() as stack:
        several = languages if len(languages) > 1 else languages * 2
        players = [stack.enter_context(theatre.start(language)) for language in several]
        for player in players:
            player.do(do="open", session="race", user=theatre.users["client"])
        yield [Runner(player, number) for number, player in enumerate(players)]


def race(runners: Sequence[Runner], keys: Sequence[str], attempts: int) -> None:
    """Let all attempt all keys, and again until there were so many attempts.

    In one round everybody takes a key of its own before all go on to the others', so that each language wins some. In
    the next one all are at the same key at once.
    """
    size = len(runners)
    rounds = [keys[begin : begin + size] for begin in range(0, len(keys), size)]
    start = Barrier(size)

    def run(runner: Runner) -> None:
        try:
            for number, some in enumerate(rounds * ceil(attempts / (size * len(keys)))):
                start.wait(timeout=PATIENCE_SECONDS)
                own = runner.number % len(some)
                if number % 2 == 0:
                    runner.settle(some[own])
                    start.wait(timeout=PATIENCE_SECONDS)
                for key in some if number % 2 else [*some[own + 1 :], *some[:own]]:
                    runner.settle(key)
        except BaseException:
            start.abort()
            raise

    with ThreadPoolExecutor(size) as threads:
        running = [threads.submit(run, runner) for runner in runners]
    for done in sorted(running, key=lambda done: isinstance(done.exception(), BrokenBarrierError)):
        done.result()  # first the error that broke the barrier for the others


def test_one_effect_for_each_key_and_one_answer_whoever_asks(
    runners: list[Runner], theatre: Theatre, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [f"key-{number}" for number in range(KEYS)]
    race(runners, keys, ATTEMPTS)

    effects: dict[str, int] = dict(theatre.admin.execute('select "order", count(*) from refunds group by 1').fetchall())
    assert effects == dict.fromkeys(keys, 1)

    wins: Counter[str] = Counter()
    told_to_wait = 0
    for key in keys:
        given = [(runner, answer) for runner in runners for answer in runner.answers[key]]
        done = [(runner, answer) for runner, answer in given if answer["status"] != 409]
        ((winner, first),) = [(runner, answer) for runner, answer in done if REPLAYED not in answer["headers"]]
        wins[winner.name] += 1
        assert first["status"] == 201
        for runner, answer in done:
            if answer is not first:
                expected = {**first, "headers": [*first["headers"], REPLAYED]}
                assert answer == expected, f"{runner.name} was told something else than {winner.name} at {key}"
        for runner, answer in given:
            if answer["status"] == 409:
                told_to_wait += 1
                problem = json.loads(bytes.fromhex(answer["body"]["bytes"]))
                assert problem["code"] == "idempotency_request_in_progress", f"{runner.name} at {key}: {problem}"
                assert ["Retry-After", "1"] in answer["headers"]

    attempts = sum(runner.attempts for runner in runners)
    with capsys.disabled():
        shown = ", ".join(f"{name} {number}" for name, number in sorted(wins.items()))
        print(f"\n{attempts} attempts at {len(keys)} keys, {told_to_wait} told to wait; winners: {shown}")
    assert attempts >= ATTEMPTS
    assert set(wins) == {runner.name for runner in runners}, "each wins some of the time"
    assert told_to_wait > 0, "they have met"

"""An effect outside the database happens between two transactions, under a key of its own."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.conformance.conftest import Theatre
from tests.conformance.languages import Language, chosen
from tests.conformance.player import Player
from tests.support.calls import set_policy

CHOSEN = [language for language in chosen() if language.leased]
HEADERS = [["Location", "/1"]]
ANSWER = {"status": 201, "headers": HEADERS, "body": {"bytes": "00ff"}}
REPLAY = {**ANSWER, "headers": [*HEADERS, ["Idempotency-Replayed", "true"]]}


class Stage:
    """A language at play on one session, and what came of it."""

    def __init__(self, player: Player, theatre: Theatre) -> None:
        self._player = player
        self._admin = theatre.admin
        theatre.admin.execute("create table elsewhere (key text); grant insert on elsewhere to public")
        set_policy(theatre.admin, "provider", on_lapse="retry", release_statuses=[429])
        player.do(do="open", session="a", user=theatre.users["client"])

    def attempt(self, key: str | None, *, fails: str = "", policy: str | None = None, **answer: Any) -> dict[str, Any]:
        """Ask once; `fails` names what is to fail."""
        request = {"scope": "s", "key_header": key, "method": "POST", "path": "/", "body": None, "content_type": None}
        effect = {"sql": "insert into elsewhere values ('{key}')"}
        work = {"sql": "insert into effects values ('s')", **ANSWER, **answer}
        if fails:
            {"effect": effect, "work": work}[fails]["fail"] = True
        return self._player.ask(
            do="leased", session="a", request={**request, "policy": policy}, effect=effect, work=work
        )

    def outcome(self, key: str) -> Any:
        """Return what the database knows of a key."""
        return self._rows("select outcome from idem.lookup('s', %s)", key)[0]

    @property
    def elsewhere(self) -> list[Any]:
        """The keys under which the effect has happened."""
        return self._rows("select key from elsewhere")

    @property
    def here(self) -> int:
        """How many works are committed."""
        return len(self._rows("select 1 from effects"))

    def _rows(self, query: Any, *values: object) -> list[Any]:
        return [value for (value,) in self._admin.execute(query, values)]


@pytest.fixture(params=CHOSEN, ids=[language.key for language in CHOSEN])
def stage(
    request: pytest.FixtureRequest, prepared: Callable[[Language], Language], theatre: Theatre
) -> Iterator[Stage]:
    with theatre.start(prepared(request.param)) as player:
        yield Stage(player, theatre)


def test_the_effect_happens_once_and_work_and_answer_commit_together(stage: Stage) -> None:
    assert stage.attempt("k") == ANSWER
    assert stage.attempt("k") == REPLAY
    assert len(stage.elsewhere) == stage.here == 1
    assert stage.outcome("k") == "completed"


def test_what_fails_once_the_effect_may_have_happened_leaves_the_outcome_unknown(stage: Stage) -> None:
    for key, fails in (("e", "effect"), ("w", "work")):
        assert stage.attempt(key, fails=fails) == {"failed": True}
        assert stage.outcome(key) == "lapsed"
        assert stage.attempt(key)["status"] == 409
    assert (len(stage.elsewhere), stage.here) == (2, 0)


def test_the_next_attempt_has_the_same_downstream_key(stage: Stage) -> None:
    assert stage.attempt("k", fails="work", policy="provider") == {"failed": True}
    assert stage.attempt("k", policy="provider") == ANSWER
    first, second = stage.elsewhere
    assert first == second
    assert stage.here == 1


def test_a_status_that_releases_frees_the_key(stage: Stage) -> None:
    refused: dict[str, Any] = {"status": 429, "headers": None, "body": None}
    assert stage.attempt("k", policy="provider", **refused) == refused
    assert stage.outcome("k") == "absent"
    assert stage.attempt("k", policy="provider") == ANSWER


def test_an_error_of_the_call_reaches_the_caller(stage: Stage) -> None:
    assert stage.attempt(uuid4().hex, policy="no such")["error"]["kind"] == "no_such_policy"
    assert stage.elsewhere == []

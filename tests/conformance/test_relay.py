"""What one language has begun, others go on with: tokens, answers and decisions belong to no language."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle, islice
from typing import Any

import pytest

from tests.conformance.conftest import Theatre
from tests.conformance.counting import count
from tests.conformance.languages import Language, chosen
from tests.conformance.player import Player
from tests.support.waiting import wait_until

CHOSEN = chosen()
SCOPE = "relay"
BODY = {"bytes": bytes(range(256)).hex()}


class Member:
    """One language in a session of its own; `call` returns the only row."""

    def __init__(self, player: Player, theatre: Theatre, role: str = "client") -> None:
        self.player = player
        self.name = player.language.name
        self._session = role
        player.do(do="open", session=role, user=theatre.users[role])

    def do(self, what: str, **request: Any) -> dict[str, Any]:
        return self.player.do(do=what, session=self._session, **request)

    def call(self, function: str, **arguments: Any) -> Any:
        answer = self.do("call", function=function, arguments={"scope": SCOPE, **arguments})
        return answer["rows"][0] if answer["rows"] else None


@pytest.fixture
def players(prepared: Callable[[Language], Language], theatre: Theatre) -> Iterator[list[Player]]:
    with ExitStack() as stack:
        yield [stack.enter_context(theatre.start(prepared(language))) for language in CHOSEN]


def test_a_key_is_reserved_by_one_extended_and_completed_by_others_and_replayed_by_all(
    players: list[Player], theatre: Theatre
) -> None:
    members = [Member(player, theatre) for player in players]
    for first in range(len(members)):
        one, two, three, four = islice(cycle(members), first, first + 4)
        key, token = f"passed-on-{first}", one.player.do(do="token")["token"]
        begun = one.call("reserve", key=key, mode="leased", token=token, fingerprint=BODY)
        assert begun["outcome"] == "started"

        assert two.call("extend", key=key, token=token, lease="1 hour")["extend"] is not None
        assert three.call("checkpoint", key=key, token=token, recovery_point="half")["checkpoint"] is True
        assert two.call("reserve", key=key, token=token, mode="leased", fingerprint=BODY)["recovery_point"] == "half"
        answer = {"status": 201, "headers": '[["a", "1"], ["a", "2"]]', "body": BODY}
        assert four.call("complete", key=key, token=token, **answer)["complete"] is True

        for member in members:
            again = member.call("reserve", key=key, fingerprint=BODY)
            assert (again["outcome"], again["status"], again["body"]) == ("replay", 201, BODY), member.name
            assert member.call("downstream_key", key=key)["downstream_key"] == begun["downstream_key"], member.name
            assert member.call("complete", key=key, token=token, **answer)["complete"] is False, member.name
            other = member.call("reserve", key=key, fingerprint={"bytes": ""})
            assert other["outcome"] == "mismatch", member.name


def test_what_one_has_given_up_is_claimed_deferred_and_resolved_by_others(
    players: list[Player], theatre: Theatre
) -> None:
    clients = [Member(player, theatre) for player in players]
    resolvers = [Member(player, theatre, "resolver") for player in players]
    operators = [Member(player, theatre, "operator") for player in players]
    for first in range(len(players)):
        places = [place % len(players) for place in range(first, first + 4)]
        owner, resolver, operator, reader = (
            clients[places[0]],
            resolvers[places[1]],
            operators[places[2]],
            operators[places[3]],
        )
        key, token = f"given-up-{first}", owner.player.do(do="token")["token"]
        assert owner.call("reserve", key=key, mode="leased", token=token)["outcome"] == "started"
        assert owner.call("defer", key=key, token=token, reason=owner.name)["defer"] is True

        claim = resolver.call("claim_lapsed", key=key)
        assert claim["reason"] == owner.name
        assert resolver.call("defer", key=key, token=claim["token"], reason=resolver.name)["defer"] is True
        resolved = operator.call(
            "resolve", key=key, action="complete", reason=operator.name, attempt=1, status=200, body=BODY
        )
        assert resolved["resolve"] is True

        history = reader.do("call", function="history", arguments={"scope": SCOPE, "key": key})["rows"]
        assert [event["reason"] for event in history] == [
            *(None, owner.name, None, resolver.name),
            *(operator.name, None),
        ]
        for client in clients:
            again = client.call("reserve", key=key)
            assert (again["outcome"], again["status"], again["body"]) == ("replay", 200, BODY), client.name


@pytest.mark.parametrize("language", CHOSEN, ids=[language.key for language in CHOSEN])
def test_killed_in_its_transaction_a_client_leaves_the_key_to_another(
    language: Language, prepared: Callable[[Language], Language], theatre: Theatre
) -> None:
    prepared(language)
    key = "killed"
    with theatre.start(language) as victim, theatre.start(language) as other:
        lost, next_one = Member(victim, theatre), Member(other, theatre)
        lost.do("begin")
        assert lost.call("reserve", key=key)["outcome"] == "started"
        lost.do("execute", sql="insert into effects values ('killed')")
        assert next_one.call("reserve", key=key, mode="leased")["outcome"] == "in_progress"
        victim.kill()

        wait_until(lambda: _open_transactions(theatre) == 0, "the server to notice")
        assert next_one.call("reserve", key=key, mode="leased")["outcome"] == "started"
    assert count(theatre.admin, "select count(*) from effects") == 0


def _open_transactions(theatre: Theatre) -> int:
    return count(
        theatre.admin,
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        " and xact_start is not null and backend_type = 'client backend'",
    )

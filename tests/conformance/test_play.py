"""A scenario fails where a language answers something else: none of its expectations is empty."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.conformance.scenarios import Scenario, Stage, Unexpected, play

if TYPE_CHECKING:
    import psycopg

    from tests.conformance.player import Player


class Parrot:
    """A language that gives the same answer to every call."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self._answer = answer

    def ask(self, **request: Any) -> Mapping[str, Any]:
        return self._answer if request["do"] in {"call", "atomic", "commit"} else self.do(**request)

    def do(self, **request: Any) -> Mapping[str, Any]:
        return {"token": "6f1f5c2e-3a1d-4f0e-9d8e-0a1b2c3d4e5f"} if request["do"] == "token" else {}


def played(step: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    stage = Stage(cast("Player", Parrot(answer)), {"client": "app"}, cast("psycopg.Connection", None))
    play(Scenario("a scenario", [{"in": "a", **step}], {}), stage, "s")


def row(**columns: Any) -> dict[str, Any]:
    return {"rows": [columns]}


ERROR = {"error": {"sqlstate": "IK002", "code": "not_the_owner", "kind": "lost_reservation"}}
CALL = {"call": "lookup", "with": {"key": "k"}}
BEGAN, ENDS = "2026-01-01T00:00:00Z", "2026-01-01 00:01:00+00"

RIGHT_AND_WRONG = {
    "text": ({"row": {"outcome": "absent"}}, row(outcome="absent"), row(outcome="completed")),
    "null": ({"row": {"token": None}}, row(token=None), row(token="t")),
    "not null": ({"row": {"token": {"not": None}}}, row(token="t"), row(token=None)),
    "a column": ({"row": {"token": None}}, row(token=None), row(outcome="absent")),
    "true": ({"value": True}, row(lookup=True), row(lookup=1)),
    "one row": ({"row": {}}, row(outcome="absent"), {"rows": []}),
    "no rows": ({"rows": []}, {"rows": []}, row(outcome="absent")),
    "bytes": (
        {"row": {"body": {"hex": "00ff"}}},
        row(body={"bytes": "00ff"}),
        row(body={"bytes": "00fe"}),
    ),
    "bytes, not text": ({"row": {"body": {"text": "a"}}}, row(body={"bytes": "61"}), row(body="a")),
    "no bytes": ({"row": {"body": {"hex": ""}}}, row(body={"bytes": ""}), row(body=None)),
    "many bytes": ({"row": {"body": {"repeat": ["00", 2]}}}, row(body={"bytes": "0000"}), row(body={"bytes": "00"})),
    "a document": (
        {"row": {"body": {"json": {"a": {"b": 1}}}}},
        row(body={"bytes": b'{"a": {"b": 1, "c": 2}}'.hex()}),
        row(body={"bytes": b'{"a": {"b": 2}}'.hex()}),
    ),
    "pairs": (
        {"row": {"headers": [["a", "1"], ["b", "2"]]}},
        row(headers='[["a", "1"], ["b", "2"]]'),
        row(headers=[["b", "2"], ["a", "1"]]),
    ),
    "more pairs": ({"row": {"headers": []}}, row(headers="[]"), row(headers=[["a", "1"]])),
    "an interval": ({"row": {"retry_after": 61}}, row(retry_after="00:01:01"), row(retry_after=60)),
    "a bound": ({"row": {"retry_after": {"at_most": 2}}}, row(retry_after=2), row(retry_after="00:00:03")),
    "a distance": (
        {"row": {"lease_until": {"seconds_after": ["created_at", 60]}}},
        row(created_at=BEGAN, lease_until=ENDS),
        row(created_at=BEGAN, lease_until=BEGAN),
    ),
    "an array": (
        {"row": {"mismatched": {"sorted": ["/b", "/a"]}}},
        row(mismatched="{/a,/b}"),
        row(mismatched=["/a"]),
    ),
    "a version": (
        {"row": {"token": {"uuid_version": 4}}},
        row(token="6f1f5c2e-3a1d-4f0e-9d8e-0a1b2c3d4e5f"),
        row(token="6f1f5c2e-3a1d-8f0e-9d8e-0a1b2c3d4e5f"),
    ),
    "members": ({"value": {"has": {"a": 1}}}, row(lookup={"a": 1, "b": 2}), row(lookup={"b": 2})),
    "the scope": ({"row": {"scope": "$scope"}}, row(scope="s"), row(scope="t")),
    "no error": ({"row": {}}, row(outcome="absent"), ERROR),
    "an error": ({"error": "IK002"}, ERROR, row(outcome="absent")),
    "its SQLSTATE": ({"error": "IK002"}, ERROR, {"error": {**ERROR["error"], "sqlstate": "IK003"}}),
    "its kind": ({"error": "IK002"}, ERROR, {"error": {**ERROR["error"], "kind": None}}),
    "its code": ({"error": ["IK002", "not_the_owner"]}, ERROR, {"error": {**ERROR["error"], "code": None}}),
}


@pytest.mark.parametrize(("expectation", "right", "wrong"), RIGHT_AND_WRONG.values(), ids=RIGHT_AND_WRONG)
def test_an_expectation_tells_right_from_wrong(
    expectation: Mapping[str, Any], right: Mapping[str, Any], wrong: Mapping[str, Any]
) -> None:
    played({**CALL, **expectation}, right)
    with pytest.raises(Unexpected):
        played({**CALL, **expectation}, wrong)


def test_a_commit_that_should_fail_must() -> None:
    played({"do": "commit", "error": "IK002"}, ERROR)
    with pytest.raises(Unexpected):
        played({"do": "commit", "error": "IK002"}, {})


def test_the_answer_of_the_client_is_compared() -> None:
    step = {"atomic": {}, "work": {"status": 201}, "answer": {"status": 201, "headers": None}}
    played(step, {"status": 201, "headers": None, "body": None})
    with pytest.raises(Unexpected):
        played(step, {"status": 201, "headers": [], "body": None})
    with pytest.raises(Unexpected):
        played(step, {"failed": True})


def test_a_value_that_was_noted_must_stay() -> None:
    parrot = cast("Player", Parrot(row(outcome="absent")))
    stage = Stage(parrot, {"client": "app"}, cast("psycopg.Connection", None))
    steps = [
        {"in": "a", **CALL, "row": {"outcome": "$first"}},
        {"in": "a", **CALL, "row": {"outcome": {"not": "$first"}}},
    ]
    play(Scenario("noted", steps[:1] * 2, {}), stage, "s")
    with pytest.raises(Unexpected):
        play(Scenario("another", steps, {}), stage, "s")


def test_fingerprints_of_one_class_are_one_and_of_two_are_two() -> None:
    one, another = {"body": {"text": "a"}}, {"body": {"text": "b"}}
    always_the_same = row(fingerprint={"bytes": "00"})
    played({"classes": [[one, another]]}, always_the_same)
    with pytest.raises(Unexpected):
        played({"classes": [[one], [another]]}, always_the_same)

"""The scenarios, and how one is played. `scenarios.yaml` begins with a description of what may stand in it."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import yaml

from tests.conformance.counting import count
from tests.conformance.player import Player
from tests.support.waiting import wait_until

FILE = Path(__file__).with_name("scenarios.yaml")

KINDS = {
    "IK001": "key_invalid",
    "IK002": "lost_reservation",
    "IK003": "no_such_reservation",
    "IK004": "wrong_mode",
    "IK005": "not_completed",
    "IK006": "no_such_policy",
    "IK007": "limit_exceeded",
}
JSON_ARGUMENTS = {"headers", "fields", "state", "args"}
SCOPELESS = {"fingerprint", "fingerprint_fields", "json_response", "policy_document", "version"}

_VARIABLE = re.compile(r"\$\w+")
_INTERVAL = re.compile(r"(?:(\d+) days? ?)?(?:(\d+):(\d+):(\d+(?:\.\d+)?))?")


class Unexpected(AssertionError):
    """A language has answered something else than the scenario says."""


@dataclass(frozen=True)
class Scenario:
    """A list of steps on named sessions."""

    name: str
    steps: Sequence[Mapping[str, Any]]
    roles: Mapping[str, str]


@dataclass(frozen=True)
class Script:
    """The whole file."""

    policies: Mapping[str, Mapping[str, Any]]
    scenarios: Sequence[Scenario]


@cache
def script() -> Script:
    """Read the file."""
    page = yaml.load(FILE.read_text(), yaml.CSafeLoader)
    scenarios = [Scenario(one["scenario"], one["steps"], one.get("roles", {})) for one in page["scenarios"]]
    return Script(page["policies"], scenarios)


@dataclass
class Stage:
    """Where a language plays: its program, the roles of the database by name, and a connection to look with."""

    player: Player
    users: Mapping[str, str]
    admin: psycopg.Connection
    opened: set[str] = field(default_factory=set)

    def session(self, name: str, role: str) -> str:
        """Return the session of this name and role, opened at its first use."""
        session = f"{name}:{role}"
        if session not in self.opened:
            self.player.do(do="open", session=session, user=self.users[role])
            self.opened.add(session)
        return session

    def close(self, session: str) -> None:
        """Close a session."""
        self.player.do(do="close", session=session)
        self.opened.discard(session)

    def close_all(self) -> None:
        """Close every session."""
        for session in sorted(self.opened):
            self.close(session)


def play(scenario: Scenario, stage: Stage, scope: str) -> None:
    """Play one scenario in a scope of its own. Raises Unexpected."""
    _Play(scenario, stage, scope).run()


class _Play:
    def __init__(self, scenario: Scenario, stage: Stage, scope: str) -> None:
        self._scenario = scenario
        self._stage = stage
        self._known: dict[str, Any] = {"$scope": scope}
        self._inside: set[str] = set()
        self._changed: set[str] = set()

    def run(self) -> None:
        for number, step in enumerate(self._scenario.steps, 1):
            try:
                self._step(step)
            except Unexpected as error:
                shown = json.dumps(step, ensure_ascii=False, default=str)[:400]
                raise Unexpected(f"step {number} {shown}\n    {error}") from None
        self._leave()

    def _step(self, step: Mapping[str, Any]) -> None:
        if "effects" in step:
            self._effects(step["effects"])
            return
        name = step["in"]
        session = self._stage.session(name, self._scenario.roles.get(name, "client"))
        for word, play in self._plays.items():
            if word in step:
                play(self, session, step)
                return
        raise ValueError(f"a step without a known word: {step}")

    def _do(self, session: str, step: Mapping[str, Any]) -> None:
        what = step["do"]
        if what == "close":
            self._stage.close(session)
            self._inside.discard(session)
            wait_until(lambda: self._open_transactions() == len(self._inside), "a closed session to end")
            return
        request = {"do": what, "session": session} | {k: v for k, v in step.items() if k == "isolation"}
        answer = self._stage.player.ask(**request)
        if what == "begin":
            self._inside.add(session)
        else:
            self._inside.discard(session)
        self._expect_error(answer, step)

    def _execute(self, session: str, step: Mapping[str, Any]) -> None:
        self._answer_to(session, step, do="execute", sql=self._text(step["execute"]))

    def _clock(self, session: str, step: Mapping[str, Any]) -> None:
        self._changed.add(session)
        self._answer_to(session, step, do="execute", sql=f"set idem.clock_offset = '{step['clock']}'")

    def _setting(self, session: str, step: Mapping[str, Any]) -> None:
        self._changed.add(session)
        self._answer_to(session, step, do="execute", sql=f"set {step['set']}")

    def _call(self, session: str, step: Mapping[str, Any]) -> None:
        given = dict(step.get("with", {}))
        if step["call"] not in SCOPELESS and "scope" not in given:
            given["scope"] = "$scope"
        arguments = {name: self._argument(name, value) for name, value in given.items()}
        answer = self._answer_to(session, step, do="call", function=step["call"], arguments=arguments)
        if "error" in answer:
            return
        rows = [{column: _read(column, value) for column, value in row.items()} for row in answer["rows"]]
        if "value" in step:
            self._expect_rows(rows, [{step["call"]: step["value"]}])
        elif "row" in step:
            self._expect_rows(rows, [step["row"]])
        elif "rows" in step:
            self._expect_rows(rows, step["rows"])

    def _atomic(self, session: str, step: Mapping[str, Any]) -> None:
        given = {"method": "POST", "path": "/", "key_header": None, "body": None, "content_type": None}
        request = {name: self._argument(name, value) for name, value in (given | step["atomic"]).items()}
        request.setdefault("scope", self._known["$scope"])
        work = dict(step.get("work", {}))
        work["sql"] = self._text(work.get("sql", "insert into effects values ('$scope')"))
        if not work.get("fail"):
            work.setdefault("headers", None)
            work["body"] = self._argument("body", work.get("body"))
        answer = self._answer_to(session, step, do="atomic", request=request, work=work)
        self._expect_answer(answer, step)

    def _refund(self, session: str, step: Mapping[str, Any]) -> None:
        answer = self._answer_to(
            session,
            step,
            do="refund",
            scope=self._known["$scope"],
            key_header=self._argument("key_header", step.get("key_header")),
            body=self._argument("body", step["refund"]),
        )
        self._expect_answer(answer, step)

    def _classes(self, session: str, step: Mapping[str, Any]) -> None:
        """Requests of one list have one fingerprint, and those of different lists have different ones."""
        seen: dict[str, int] = {}
        for number, members in enumerate(step["classes"]):
            found = set()
            for member in members:
                request = {"method": "POST", "path": "/"} | step.get("all", {}) | member
                arguments = {name: self._argument(name, value) for name, value in request.items()}
                answer = self._stage.player.ask(do="call", session=session, function="fingerprint", arguments=arguments)
                self._check("error" not in answer, f"{member} is answered with {answer}")
                found.add(str(answer["rows"][0]["fingerprint"]["bytes"]))
            self._check(len(found) == 1, f"class {number} has {len(found)} fingerprints: {members}")
            other = seen.setdefault(found.pop(), number)
            self._check(other == number, f"classes {other} and {number} have the same fingerprint")

    _plays: Mapping[str, Callable[["_Play", str, Mapping[str, Any]], None]] = {
        "do": _do,
        "execute": _execute,
        "clock": _clock,
        "set": _setting,
        "call": _call,
        "atomic": _atomic,
        "refund": _refund,
        "classes": _classes,
    }

    def _answer_to(self, session: str, step: Mapping[str, Any], **request: Any) -> dict[str, Any]:
        answer = self._stage.player.ask(session=session, **request)
        self._expect_error(answer, step)
        return answer

    def _effects(self, expected: int) -> None:
        """So many effects of this scenario have committed, in either table."""
        found = count(
            self._stage.admin,
            "select (select count(*) from effects where scope = %(scope)s)"
            " + (select count(*) from refunds where \"order\" like %(scope)s || '%%')",
            {"scope": self._known["$scope"]},
        )
        self._check(found == expected, f"{found} effects instead of {expected}")

    def _expect_error(self, answer: Mapping[str, Any], step: Mapping[str, Any]) -> None:
        got = answer.get("error")
        if "error" not in step:
            self._check(got is None, f"the error {got}")
            return
        self._check(got is not None, f"no error, but {str(answer)[:300]}")
        assert got is not None
        sqlstate, *code = step["error"] if isinstance(step["error"], list) else [step["error"]]
        kind = KINDS.get(sqlstate)
        expected = {"sqlstate": sqlstate, "kind": kind} | ({"code": code[0]} if code else {})
        self._check({name: got.get(name) for name in expected} == expected, f"{got} instead of {expected}")

    def _expect_answer(self, answer: Mapping[str, Any], step: Mapping[str, Any]) -> None:
        for name, expected in step.get("answer", {}).items():
            self._expect(name, _read(name, answer.get(name)), expected, answer)

    def _expect_rows(self, rows: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> None:
        self._check(len(rows) == len(expected), f"{len(rows)} rows instead of {len(expected)}: {rows}")
        for row, columns in zip(rows, expected, strict=True):
            for column, value in columns.items():
                self._check(column in row, f"no column {column} in {row}")
                self._expect(column, row[column], value, row)

    def _expect(self, name: str, got: Any, expected: Any, row: Mapping[str, Any]) -> None:
        shown = f"{name} is {str(got)[:300]!r}"
        match expected:
            case str() if _VARIABLE.fullmatch(expected):
                self._check(got is not None, f"{name} is null")
                known = self._known.setdefault(expected, got)
                self._check(got == known, f"{shown} instead of {expected} = {str(known)[:300]!r}")
            case {"not": other}:
                self._check(got is not None and got != self._known.get(other, other), f"{shown}, which is not to be")
            case {"seconds_after": _} | {"later_than": _} | {"at_most": _}:
                self._expect_order(name, got, expected, row)
            case {"uuid_version": version}:
                self._check(UUID(got).version == version, shown)
            case {"json": document}:
                self._check(isinstance(got, bytes), f"{shown} instead of bytes")
                self._expect_json(name, json.loads(got), document)
            case {"has": document}:
                self._expect_json(name, got, document)
            case {"keys": names}:
                self._check(sorted(got) == sorted(names), f"{name} has the members {sorted(got)} instead of {names}")
            case Mapping() if _is_bytes(expected):
                value = _bytes(expected)
                self._check(got == value, f"{shown} instead of {value[:100]!r} ({len(value)} bytes)")
            case [*items] if isinstance(got, list):
                self._check(len(got) == len(items), f"{shown} instead of {items}")
                for index, (one, item) in enumerate(zip(got, items, strict=True)):
                    self._expect(f"{name}[{index}]", one, item, row)
            case {"sorted": values}:
                self._check(isinstance(got, list) and sorted(got) == sorted(values), f"{shown} instead of {values}")
            case _:
                value = self._filled(expected)
                same = got == value and isinstance(got, bool) == isinstance(value, bool)
                self._check(same, f"{shown} instead of {str(value)[:300]!r}")

    def _expect_order(self, name: str, got: Any, expected: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        match expected:
            case {"seconds_after": [column, seconds]}:
                past = (got - row[column]).total_seconds()
                self._check(abs(past - seconds) < 0.01, f"{name} is {past} s after {column} instead of {seconds}")
            case {"later_than": other}:
                self._check(got > self._known[other], f"{name} is {got}, not later than {self._known[other]}")

            case {"at_most": most}:
                self._check(0 < got <= most, f"{name} is {got}, not above 0 and at most {most}")

    def _expect_json(self, path: str, got: Any, expected: Any) -> None:
        """Objects have at least the members that are expected, at any depth; everything else is equal."""
        if isinstance(expected, Mapping) and isinstance(got, Mapping):
            for name, value in expected.items():
                self._check(name in got, f"{path} has no member {name}")
                self._expect_json(f"{path}/{name}", got[name], value)
        else:
            self._expect(path, got, expected, {})

    def _argument(self, name: str, value: Any) -> Any:
        """Return what is sent for an argument: a token that is not known yet is made by the client."""
        if name == "token" and isinstance(value, str) and _VARIABLE.fullmatch(value) and value not in self._known:
            token = self._stage.player.do(do="token")["token"]
            self._check(UUID(token).version == 4, f"the token {token} is no random UUID")
            self._check(token not in self._known.values(), "a token twice")
            self._known[value] = token
        match value:
            case str() if _VARIABLE.fullmatch(value):
                value = self._known[value]
            case {"members": int(number)}:
                value = json.dumps({f"/{member}": "x" for member in range(number)})
            case _ if name in JSON_ARGUMENTS and value is not None:
                value = json.dumps(self._filled(value), ensure_ascii=False)
            case {"value": document}:
                value = json.dumps(self._filled(document), ensure_ascii=False).encode()
            case {"chars": [characters, times]}:
                value = characters * times
            case Mapping() if _is_bytes(value):
                value = _bytes(value)
            case _:
                value = self._filled(value)
        return {"bytes": value.hex()} if isinstance(value, bytes) else value

    def _filled(self, value: Any) -> Any:
        """Put what is known in the place of variables, at any depth."""
        if isinstance(value, str):
            return self._known.get(value, self._text(value))
        if isinstance(value, list):
            return [self._filled(one) for one in value]
        if isinstance(value, Mapping):
            return {name: self._filled(one) for name, one in value.items()}
        return value

    def _text(self, text: str) -> str:
        return _VARIABLE.sub(lambda found: str(self._known.get(found[0], found[0])), text)

    def _open_transactions(self) -> int:
        return count(
            self._stage.admin,
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and usename = any(%s) and state like 'idle in transaction%%'",
            [list(self._stage.users.values())],
        )

    def _leave(self) -> None:
        """Leave the sessions as they were found, for the next scenario."""
        for session in sorted(self._inside):
            self._stage.player.do(do="rollback", session=session)
        for session in sorted(self._changed & self._stage.opened):
            self._stage.player.do(do="execute", session=session, sql="reset all")

    @staticmethod
    def _check(holds: bool, what: str) -> None:
        if not holds:
            raise Unexpected(what)


def _is_bytes(value: Mapping[str, Any]) -> bool:
    return len(value) == 1 and value.keys() <= {"hex", "text", "repeat"}


def _bytes(value: Mapping[str, Any]) -> bytes:
    match value:
        case {"hex": digits}:
            return bytes.fromhex(str(digits))
        case {"repeat": [digits, times]}:
            return bytes.fromhex(str(digits)) * int(times)
        case {"text": text}:
            return str(text).encode()
    raise ValueError(f"no bytes: {value}")


def _read(column: str, value: Any) -> Any:
    """Return a column as Python has it, in whichever of the allowed ways it was sent."""
    match value:
        case {"bytes": str(digits)}:
            value = bytes.fromhex(digits)
        case str() if column in {"state", "headers", "detail", "policy_document", "fingerprint_fields"}:
            value = json.loads(value)
        case str() | int() | float() if column == "retry_after":
            value = _seconds(value)
        case str() if column in {"at", "extend"} or column.endswith(("_at", "_until")):
            value = _moment(value)
        case str() if column == "mismatched":
            value = _array(value)
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, int | float):
        return value
    found = _INTERVAL.fullmatch(str(value))
    if found is None:
        raise Unexpected(f"the interval {value!r}")
    days, hours, minutes, seconds = (float(group or 0) for group in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _moment(text: str) -> datetime:
    """Return a time of day, to the millisecond: not every language has more."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise Unexpected(f"the time {text} has no zone")
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _array(text: str) -> Iterable[str]:
    """Read an array of texts that have no comma and no brace, as those of `mismatched` have none here."""
    inside = text.removeprefix("{").removesuffix("}")
    return [element.strip('"') for element in inside.split(",")] if inside else []

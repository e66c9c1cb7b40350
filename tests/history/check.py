"""Judges a history: what clients were told, against what is in the database in the end.

Nothing here knows how pyidem works. Times of calls are those of the machine (``began``, ``ended_at``); lives, effects
and expiries go by the clock of the database. Where the moment of something is not known exactly, the bound is taken
that accuses nobody wrongly.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from tests.history.record import FAIL, OK, UNKNOWN, Call, History
from tests.history.world import family_of, op_in

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# errors that the contract has, and those of a lost connection; 55P03 and 57014 are not asked for
_EXPECTED_ERRORS = {"IK002", "IK003", "IK004", "40001", "lost", "LostReservation", "OutcomeUnknown", "InProgress"}
_LOST_CLASSES = ("08", "57")


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept: which, of which key, and what shows it."""

    promise: str
    key: str
    evidence: str

    def __str__(self) -> str:
        return f"VIOLATION {self.promise}: {self.key}: {self.evidence}"


@dataclass(frozen=True)
class Remains:
    """What is in the database in the end: rows of the tables, and the time at which they were read."""

    effects: list[Any]
    reservations: list[Any]
    unfinished: set[str]
    resolved: set[str]
    at: datetime


class Life(NamedTuple):
    """One life of a key, named by when it began."""

    key: str
    began: int


class Acquisition(NamedTuple):
    """An owner, as acknowledged to it."""

    life: Life
    token: str
    attempt: int
    call: Call


class Effect:
    """A business write that has committed.

    ``began`` is when its life began at the earliest, ``judged`` when its key was found free at the latest, both by the
    clock of the database.
    """

    def __init__(self, row: Any) -> None:
        self.row = row
        self.op: str = row.op
        self.key: str = row.key
        self.work = _micros(row.work_began)
        self.life = Life(row.key, _micros(row.life)) if row.life else None
        self.began = self.life.began if self.life else _micros(row.transaction_began)
        self.judged = self.life.began if self.life else self.work

    def __str__(self) -> str:
        return f"{self.op} ({self.row.kind}, attempt {self.row.attempt}, at {_time(self.work)})"

    @property
    def free_again(self) -> int:
        """The earliest moment at which the next life of its key may begin."""
        family = family_of(self.key)
        # who completes first and works then, as an operator and a consumer do, was completed before the work
        completed = _micros(self.row.completed) if self.row.completed else self.work
        return max(self.began + family.ttl, completed + family.min_retention) + family.tombstone

    @property
    def answer(self) -> tuple[int | None, list[Any], str | None]:
        """Status, headers and body as its client gave them."""
        return _answer_of(self.row)


def judge(history: History, remains: Remains) -> list[Violation]:
    """Return every violation that can be shown."""
    case = Case(history, remains)
    return [violation for rule in RULES for violation in rule(case)]


class Case:
    """The evidence, sorted."""

    def __init__(self, history: History, remains: Remains) -> None:
        self.calls = history.calls
        self.remains = remains

    @cached_property
    def effects(self) -> dict[str, Effect]:
        """The effects, by attempt."""
        return {row.op: Effect(row) for row in self.remains.effects}

    @cached_property
    def effects_of_key(self) -> dict[str, list[Effect]]:
        """The effects of each key, in the order of their lives."""
        found: defaultdict[str, list[Effect]] = defaultdict(list)
        for row in self.remains.effects:
            found[row.key].append(Effect(row))
        return {key: sorted(effects, key=lambda effect: effect.judged) for key, effects in found.items()}

    @cached_property
    def acquisitions(self) -> list[Acquisition]:
        """Every owner of a leased reservation that was told so, its commit included, by when it was told."""
        found = []
        for call in self.calls:
            if call.ended == OK and call.name == "reserve" and call.given.get("mode") == "leased":
                if call.answer.get("outcome") == "started":
                    found.append(
                        _acquired(call, call.key, call.answer, call.answer.get("token") or call.given["token"])
                    )
            elif call.ended == OK and call.name == "claim":
                found += [_acquired(call, row["key"], row, row["token"]) for row in call.answer["rows"]]
        return found

    @cached_property
    def commits(self) -> dict[str, list[Call]]:
        """The calls that would commit the effect of an attempt."""
        found: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self.calls:
            if call.name in ("commit", "block", "run") or (
                call.name == "resolve" and call.given["action"] == "complete"
            ):
                found[call.op].append(call)
        return found

    @cached_property
    def releases(self) -> dict[str, list[Call]]:
        """The calls that would free a key."""
        found: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self.calls:
            if call.name == "release" or (call.name == "resolve" and call.given["action"] == "release"):
                found[call.key].append(call)
        return found

    @cached_property
    def tokens(self) -> Counter[str]:
        """How often each token was given to reserve."""
        return Counter(call.given["token"] for call in self.calls if call.name == "reserve" and "token" in call.given)

    def is_repeated(self, call: Call) -> bool:
        """Tell whether a reserve was a repetition, whose reservation is older than it."""
        return self.tokens[call.given["token"]] > 1

    @cached_property
    def answers(self) -> list[tuple[Call, str]]:
        """Every answer that was sent to somebody who did not do the work, and the attempt that it names."""
        return [
            (call, op_in(bytes.fromhex(call.answer["body"])))
            for call in self.calls
            if call.ended == OK and call.answer.get("outcome") in ("replay", "completed") and call.answer.get("body")
        ]


def _acquired(call: Call, key: str, row: dict[str, Any], token: str) -> Acquisition:
    return Acquisition(Life(key, row["created_at"]), token, row["attempt"], call)


Rule = Callable[[Case], Iterator[Violation]]
RULES: list[Rule] = []


def rule(function: Rule) -> Rule:
    """Make it one of the rules."""
    RULES.append(function)
    return function


@rule
def at_most_one_effect(case: Case) -> Iterator[Violation]:
    """I1: one effect in a life, and no new life before the last one is over."""
    for key, effects in case.effects_of_key.items():
        for first, second in itertools.pairwise(effects):
            if second.judged < first.free_again:
                early = timedelta(microseconds=first.free_again - second.judged)
                yield Violation("one effect", key, f"{first} and {second}, {early} too early")


@rule
def nobody_starts_again(case: Case) -> Iterator[Violation]:
    """I1, I8: nobody is told to do the work, even if it comes to nothing, while its answer is kept."""
    for call in case.calls:
        if call.ended == OK and call.answer.get("outcome") == "started" and "created_at" in call.answer:
            began = call.answer["created_at"]
            for effect in case.effects_of_key.get(call.key, []):
                other_life = effect.life is None or effect.life.began != began
                if other_life and effect.op != call.op and effect.work <= began < effect.free_again:
                    yield Violation("started again", call.key, f"{call.op} in the life of {effect.op}")


@rule
def acknowledged_work_is_there(case: Case) -> Iterator[Violation]:
    """What was acknowledged has committed, and what was refused has not."""
    for op, commits in case.commits.items():
        ends = {call.ended for call in commits if call.answer.get("outcome", "started") == "started"}
        done = [call for call in commits if call.ended == OK and call.answer.get("outcome", "started") == "started"]
        done = [call for call in done if call.answer.get("done", True)]
        if done and op not in case.effects:
            yield Violation("acknowledged", done[0].key, f"{op} has committed, and its effect is not there")
        if op in case.effects and ends <= {FAIL}:
            yield Violation("refused", commits[0].key, f"{op} was refused, and its effect is there")
    for op in case.effects.keys() - case.commits.keys():
        yield Violation("refused", case.effects[op].key, f"{op} never tried to commit, and its effect is there")


@rule
def one_answer(case: Case) -> Iterator[Violation]:
    """I2: every answer is, to the byte, that of an effect that is there; and of the right request (I4)."""
    for call, op in case.answers:
        effect = case.effects.get(op)
        if effect is None or effect.key != call.key:
            yield Violation("answer", call.key, f"{call.op} was answered by {op}, of which there is no effect")
            continue
        headers = [pair for pair in call.answer.get("headers", []) if pair[0] != "Idempotency-Replayed"]
        if (call.answer["status"], headers, call.answer["body"]) != effect.answer:
            yield Violation("answer", call.key, f"{call.op} got another answer than {op} has stored")
        given = call.given.get("fingerprint")
        if given and effect.row.fingerprint and given != effect.row.fingerprint:
            yield Violation("answer", call.key, f"{call.op} got the answer to another request, {op}")


@rule
def no_answer_before_its_commit(case: Case) -> Iterator[Violation]:
    """Nobody sees an answer before somebody has asked for its commit, and nobody an old one after a newer commit."""
    acknowledged: defaultdict[str, list[tuple[int, Effect]]] = defaultdict(list)
    for op, commits in case.commits.items():
        told = [call.ended_at for call in commits if call.ended == OK]
        if op in case.effects and told:
            acknowledged[case.effects[op].key].append((min(told), case.effects[op]))
    for call, op in case.answers:
        commits, effect = case.commits.get(op, []), case.effects.get(op)
        if not commits or call.ended_at < min(commit.began for commit in commits):
            yield Violation("before commit", call.key, f"{call.op} was answered by {op}, which had not committed")
        for told, newer in acknowledged[call.key]:
            if effect and newer.judged > effect.judged and told < call.began:
                yield Violation("old answer", call.key, f"{call.op} was answered by {op}, long after {newer.op}")


@rule
def only_the_owner_finishes(case: Case) -> Iterator[Violation]:
    """I6: who was superseded before it asked for its commit does not get it."""
    owners: defaultdict[Life, list[Acquisition]] = defaultdict(list)
    for acquisition in case.acquisitions:
        owners[acquisition.life].append(acquisition)
    finished = ("commit", "release", "defer", "extend", "checkpoint")
    for call in case.calls:
        if call.name not in finished or call.ended != OK or call.given.get("life") is None:
            continue
        if call.answer.get("repeated"):
            continue
        rivals = owners[Life(call.key, call.given["life"])]
        own = [rival.call.ended_at for rival in rivals if rival.token == call.given["token"]]
        for rival in rivals:
            later = own and rival.call.began > max(own) and rival.call.ended_at < call.began
            if later and rival.token != call.given["token"]:
                yield Violation("stale owner", call.key, f"{call.op} could {call.name} after {rival.call.op}")


@rule
def a_claim_has_a_token_of_its_own(case: Case) -> Iterator[Violation]:
    """I6: what a resolver is given no other owner has, or either could finish what the other is at."""
    holders: dict[str, Acquisition] = {}
    for acquisition in case.acquisitions:
        other = holders.setdefault(acquisition.token, acquisition)
        if other is not acquisition and "claim" in (acquisition.call.name, other.call.name):
            evidence = f"{acquisition.call.op} has the token of {other.call.op}"
            yield Violation("own token", acquisition.life.key, evidence)


@rule
def attempts_are_counted(case: Case) -> Iterator[Violation]:
    """In one life each takeover, or reserve after a release, has a higher attempt than all before."""
    last: dict[Life, Acquisition] = {}
    for acquisition in sorted(case.acquisitions, key=lambda each: each.call.ended_at):
        if acquisition.call.name == "claim":
            continue
        before = last.setdefault(acquisition.life, acquisition)
        is_new = before.call.ended_at < acquisition.call.began and before.token != acquisition.token
        if is_new and acquisition.attempt <= before.attempt:
            evidence = f"{acquisition.call.op} is attempt {acquisition.attempt}, as {before.call.op} was"
            yield Violation("attempt", acquisition.life.key, evidence)
        last[acquisition.life] = max(before, acquisition, key=lambda each: each.attempt)


@rule
def nothing_is_forgotten(case: Case) -> Iterator[Violation]:
    """I7: a reservation that was acknowledged is there, or it ended by its owner, a claim's holder or an operator."""
    rows = {row.key: row for row in case.remains.reservations}
    finished = {effect.life for effects in case.effects_of_key.values() for effect in effects}
    effects_of_key = case.effects_of_key
    highest: Counter[Life] = Counter()
    for acquisition in case.acquisitions:
        highest[acquisition.life] = max(highest[acquisition.life], acquisition.attempt)
    for life, attempt in highest.items():
        row = rows.get(life.key)
        if row is not None and _micros(row.created_at) == life.began:
            continue
        within = any(
            effect.life is None and effect.began <= life.began <= effect.work
            for effect in effects_of_key.get(life.key, [])
        )
        if life in finished or within or _may_have_been_freed(case, life, attempt):
            continue
        evidence = f"attempt {attempt} of the life that began at {_time(life.began)} has gone without an end"
        yield Violation("forgotten", life.key, evidence)


def _may_have_been_freed(case: Case, life: Life, attempt: int) -> bool:
    """Tell whether somebody with the right to it may have removed the row: only after a first attempt."""
    if attempt > 1:
        return False
    releases = [call for call in case.releases.get(life.key, []) if call.ended in (OK, UNKNOWN)]
    return any(
        call.given["attempt"] == 1
        and (call.given["life"] == life.began or (call.name == "resolve" and call.given["life"] <= life.began))
        for call in releases
    )


@rule
def what_is_stored_fits(case: Case) -> Iterator[Violation]:
    """The answer of each effect is stored as long as it must be; the list of unfinished keys is that of the rows."""
    rows = {row.key: row for row in case.remains.reservations}
    now = _micros(case.remains.at)
    for key, effects in case.effects_of_key.items():
        last = effects[-1]
        if last.free_again <= now:
            continue
        row = rows.get(key)
        if row is None or row.completed_at is None:
            yield Violation("stored", key, f"{last.op} took effect, and its key is not completed")
        elif last.row.kind != "once" and row.expired_at is None and _answer_of(row) != last.answer:
            yield Violation("stored", key, f"{last.op} took effect, and another answer is stored")
    open_keys = {row.key for row in case.remains.reservations if row.completed_at is None}
    for row in case.remains.reservations:
        if row.completed_at is None and not row.leased:
            yield Violation("stored", row.key, "an atomic reservation was left unfinished")
        if row.completed_at is not None and row.status is not None and row.body is not None:
            op = op_in(bytes(row.body))
            if op not in case.effects:
                yield Violation("stored", row.key, f"the answer of {op} is stored, and it had no effect")
    for key in open_keys ^ case.remains.unfinished:
        yield Violation("stored", key, "the list of unfinished keys is not that of the rows")


@rule
def decisions_are_on_record(case: Case) -> Iterator[Violation]:
    """What an operator decided is in the history of the key, under the reason it gave."""
    for call in case.calls:
        decided = call.name == "resolve" and call.ended == OK and call.answer["done"]
        if decided and call.op not in case.remains.resolved:
            yield Violation("on record", call.key, f"{call.op} decided, and nobody wrote it down")


@rule
def only_the_clock_of_the_call_counts(case: Case) -> Iterator[Violation]:
    """I13: no reservation began before its call."""
    for call in case.calls:
        if call.ended == OK and call.answer.get("outcome") == "started" and call.answer.get("attempt") == 1:
            owner_again = call.answer["created_at"] if call.name == "reserve" and "clock" in call.given else None
            if owner_again is not None and owner_again < call.given["clock"] and not case.is_repeated(call):
                yield Violation("clock", call.key, f"{call.op} began before it was called")


@rule
def one_downstream_key(case: Case) -> Iterator[Violation]:
    """The next system is given the same key by every attempt."""
    seen: dict[str, str] = {}
    for call in case.calls:
        for row in [call.answer, *call.answer.get("rows", [])]:
            key = row.get("key") or call.given.get("key")
            if key and "downstream_key" in row and seen.setdefault(key, row["downstream_key"]) != row["downstream_key"]:
                yield Violation("downstream key", key, f"{call.op} was given another one")


@rule
def nothing_else_goes_wrong(case: Case) -> Iterator[Violation]:
    """Every error is one of the contract, or the connection was lost."""
    for call in case.calls:
        error = call.answer.get("error")
        if error and error not in _EXPECTED_ERRORS and error[:2] not in _LOST_CLASSES:
            yield Violation("error", str(call.given.get("key")), f"{call.op}, {call.name}: {error}")


def _answer_of(row: Any) -> tuple[int | None, list[Any], str | None]:
    """No headers at all and an empty list of them are the same to the Python package, so to this check as well."""
    return (row.status, row.headers or [], None if row.body is None else bytes(row.body).hex())


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _time(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()

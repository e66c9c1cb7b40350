"""The verdict: what the databases say about a run, whatever the service and the clients believe.

Each check looks at all operations and names those that it convicts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from psycopg import Connection

from pyidem.demo.operations import Operation
from pyidem.demo.record import Heard, lower_case
from pyidem.demo.unknown import Unknown

Database: TypeAlias = Connection[Any]

_STORED = """
    select asked.number, found.outcome, found.status, found.headers, found.body
    from unnest(%s::text[], %s::text[]) with ordinality as asked (scope, key, number)
    cross join lateral idem.lookup(asked.scope, asked.key) as found
    order by asked.number
"""


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise that was broken, and for which keys."""

    what: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Effects:
    """What a run has left in the databases."""

    refunds: int
    refunded_cents: int
    transfers: int
    provider_calls: int
    taken_over: int


def measure(shop: Database, provider: Database) -> Effects:
    """Count the effects that were committed."""
    refunds, amount = _row(shop, "select count(*), coalesce(sum(amount), 0)::bigint from refund")
    (taken_over,) = _row(shop, "select coalesce(sum(attempt - 1), 0)::bigint from idem.keys")
    (transfers,) = _row(provider, "select count(*) from transfer")
    (calls,) = _row(provider, "select count(*) from call")
    return Effects(refunds, amount, transfers, calls, taken_over)


def judge(
    shop: Database,
    provider: Database,
    operations: Sequence[Operation],
    unknown: Unknown,
    *,
    answers: Mapping[Operation, Sequence[Heard]],
    reuse: Mapping[Operation, Sequence[Heard]],
    unanswered: Iterable[Operation] = (),
) -> list[Violation]:
    """Return every promise that was broken; none is what the demonstration is about.

    `answers` and `reuse` are all final answers to the operations, and to other requests under their keys.
    """
    by_provider = [operation for operation in operations if operation.method != "credit"]
    convicted = [
        *_effects(operations, _amounts(shop, "refund"), "refunded"),
        *_effects(by_provider, _amounts(provider, "transfer"), "transferred by the provider"),
        *_answers(operations, answers),
        *_stored(shop, operations, answers),
        ("was not answered", [operation.name for operation in unanswered]),
        (
            "the key was accepted for another amount",
            _names(operations, lambda one: any(heard.status != 422 for heard in reuse.get(one, ()))),
        ),
        ("names another transfer than the provider's", _misnamed(shop, provider, by_provider)),
        ("the key was left unfinished", _unfinished(shop)),
    ]
    named = [Violation(what, tuple(keys)) for what, keys in convicted if keys]
    return [*named, *_sums(shop, operations), *_swept(unknown)]


_Convicted: TypeAlias = Iterator[tuple[str, list[str]]]


def _effects(operations: Sequence[Operation], amounts: Mapping[str, Sequence[int]], done: str) -> _Convicted:
    """Compare what was asked for with the amounts that were paid, by order."""
    known = {operation.order for operation in operations}
    yield f"was {done} more than once", _names(operations, lambda one: len(amounts.get(one.order, ())) > 1)
    yield f"was not {done}", _names(operations, lambda one: not amounts.get(one.order))
    yield (
        f"was {done} with another amount",
        _names(operations, lambda one: any(amount != one.amount for amount in amounts.get(one.order, ()))),
    )
    yield f"was {done} though nobody asked for it", sorted(set(amounts) - known)


def _answers(operations: Sequence[Operation], answers: Mapping[Operation, Sequence[Heard]]) -> _Convicted:
    """Compare all answers to an operation with each other."""
    yield (
        "got answers that differ",
        _names(operations, lambda one: len({heard.content for heard in answers.get(one, ())}) > 1),
    )
    yield (
        "got an answer other than 201",
        _names(operations, lambda one: any(heard.status != 201 for heard in answers.get(one, ()))),
    )


def _stored(
    shop: Database, operations: Sequence[Operation], answers: Mapping[Operation, Sequence[Heard]]
) -> _Convicted:
    """Compare the answers with what the database would answer now."""
    rows = shop.execute(_STORED, [[one.scope for one in operations], [one.key for one in operations]]).fetchall()
    stored = {
        operation: (status, lower_case(headers or ()), body)
        for operation, (_, outcome, status, headers, body) in zip(operations, rows, strict=True)
        if outcome == "completed"
    }
    yield "has no stored answer", _names(operations, lambda one: one not in stored)
    yield (
        "got an answer other than the stored one",
        _names(operations, lambda one: any(heard.content != stored.get(one) for heard in answers.get(one, ()))),
    )


def _misnamed(shop: Database, provider: Database, operations: Sequence[Operation]) -> list[str]:
    """Compare the names of the transfers in the books of both."""
    paid = set(provider.execute("select order_no, 'tr_' || id from transfer").fetchall())
    booked = dict(shop.execute("select order_no, transfer from refund where transfer is not null").fetchall())
    return _names(operations, lambda one: one.order in booked and (one.order, booked[one.order]) not in paid)


def _swept(unknown: Unknown) -> list[Violation]:
    settled = unknown.swept.completed
    # fewer where an owner was only late, and has settled its own after all; what nobody has settled is unfinished
    if 0 < settled <= unknown.outcomes:
        return []
    return [Violation(f"{unknown.outcomes} outcomes were unknown, and the sweeper has found out {settled} of them")]


def _unfinished(shop: Database) -> list[str]:
    rows = shop.execute(
        "select scope || '/' || key || ' (' || outcome || ')' from idem.keys where outcome <> 'completed' order by 1"
    )
    return [name for (name,) in rows]


def _sums(shop: Database, operations: Sequence[Operation]) -> list[Violation]:
    (paid,) = _row(shop, "select coalesce(sum(amount), 0)::bigint from refund")
    asked = sum(operation.amount for operation in operations)
    return [] if paid == asked else [Violation(f"{paid} cents were refunded in all, and {asked} were asked for")]


def _amounts(database: Database, table: str) -> Mapping[str, list[int]]:
    amounts: defaultdict[str, list[int]] = defaultdict(list)
    for order, amount in database.execute(f"select order_no, amount from {table} order by id"):  # noqa: S608 - ours
        amounts[order].append(amount)
    return amounts


def _names(operations: Sequence[Operation], convicts: Callable[[Operation], bool]) -> list[str]:
    return [operation.name for operation in operations if convicts(operation)]


def _row(database: Database, query: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = database.execute(query).fetchone()
    assert row is not None
    return row

"""JSON bodies are the same request exactly if they say the same, however they are written down."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from tests.request.documents import families, meaning
from tests.support.database import Database

QUIET = settings(
    max_examples=100, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@pytest.fixture(scope="module")
def session(shared_db: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_db.dsn, autocommit=True) as connection:
        yield connection


def fingerprints(session: psycopg.Connection, bodies: list[bytes], content_type: str) -> list[bytes]:
    rows = session.execute(
        "select idem.fingerprint('POST', '/orders', b.body, %s) from unnest(%s::bytea[]) with ordinality as b (body, n)"
        " order by b.n",
        [content_type, bodies],
    )
    return [fingerprint for (fingerprint,) in rows]


def fields(session: psycopg.Connection, bodies: list[bytes], content_type: str) -> list[dict[str, str]]:
    rows = session.execute(
        "select idem.fingerprint_fields(b.body, %s) from unnest(%s::bytea[]) with ordinality as b (body, n)"
        " order by b.n",
        [content_type, bodies],
    )
    return [found for (found,) in rows]


def classes(labels: Iterable[Hashable]) -> set[frozenset[int]]:
    """Who is equal to whom."""
    members: defaultdict[Hashable, set[int]] = defaultdict(set)
    for position, label in enumerate(labels):
        members[label].add(position)
    return {frozenset(positions) for positions in members.values()}


@QUIET
@given(families())
def test_the_fingerprint_is_equal_exactly_if_the_meaning_is(session: psycopg.Connection, bodies: list[bytes]) -> None:
    digests = fingerprints(session, bodies, "application/json")

    assert classes(digests) == classes(map(meaning, bodies)), bodies


def leaves(value: Any, pointer: str = "") -> dict[str, Any]:
    kind, content = value[0], value[-1]
    if kind == "object" and content:
        escaped = [(name.replace("~", "~0").replace("/", "~1"), child) for name, child in content]
        return {k: v for name, child in escaped for k, v in leaves(child, f"{pointer}/{name}").items()}
    if kind == "array" and content:
        return {k: v for n, child in enumerate(content) for k, v in leaves(child, f"{pointer}/{n}").items()}
    return {pointer: value}


def repeats(value: Any) -> bool:
    kind, content = value[0], value[-1]
    if kind == "object":
        names = [name for name, _ in content]
        return len(names) > len(set(names)) or any(repeats(child) for _, child in content)
    return kind == "array" and any(map(repeats, content))


@QUIET
@given(families())
def test_a_leaf_has_the_same_hash_exactly_if_it_is_the_same(session: psycopg.Connection, bodies: list[bytes]) -> None:
    meanings = [meaning(body) for body in bodies]
    known = [(said, found) for said, found in zip(meanings, fields(session, bodies, "application/json"), strict=True)]

    for said, found in known:
        assert found.keys() == ({"body"} if repeats(said) else leaves(said).keys())
    plain = [(leaves(said), found) for said, found in known if not repeats(said)]
    for pointer in {pointer for said, _ in plain for pointer in said}:
        there = [(said[pointer], found[pointer]) for said, found in plain if pointer in said]
        assert classes(value for value, _ in there) == classes(hashed for _, hashed in there), (pointer, bodies)

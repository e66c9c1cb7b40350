"""Whatever is sent, the database answers with a row or an error of the contract, soon, and the session goes on."""

import json
import os
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.support.database import Database

CONTRACT = {"IK001", "IK002", "IK003", "IK004", "IK005", "IK006", "IK007", "22023"}
LONGEST_S = 20
EXAMPLES_EACH = int(os.environ.get("PYIDEM_FUZZ_EXAMPLES", "20"))
EXAMPLES = settings(
    max_examples=EXAMPLES_EACH, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

# PostgreSQL has no NUL in text, and no lone surrogates: the driver refuses them before anything is sent
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
odd_texts = texts | st.sampled_from(
    [
        "",
        " ",
        '"',
        '""',
        '"a',
        '"a"',
        r'"\""',
        r'"\a"',
        "a,b",
        "\x7f",
        "\u202e",
        "k" * 255,
        "k" * 256,
        "k" * 100_000,
        "é",
    ]
)
keys = odd_texts | st.none()
scopes = odd_texts | st.none()
MULTIPART = "multipart/form-data; boundary=b"
types = (
    st.none()
    | st.sampled_from(["application/json", "application/x-www-form-urlencoded", MULTIPART, "text/plain", "a/b+json"])
    | odd_texts
)
bodies = st.none() | st.binary(max_size=300) | st.builds(
    b"".join,
    st.lists(
        st.sampled_from([*(bytes([char]) for char in b'{}[]:,"=&%\xff'), b'"a"', b"1e999", b"\\u0000", b"--b\r\n"]),
        max_size=60,
    ),
)  # fmt: skip
jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
headers = st.none() | jsons | st.lists(st.tuples(odd_texts, odd_texts).map(list), max_size=4)
intervals = st.none() | st.timedeltas() | st.sampled_from(
    [timedelta(0), timedelta(seconds=-1), timedelta(days=36501), timedelta(seconds=60)]
)  # fmt: skip
numbers = st.none() | st.integers(-(2**31), 2**31 - 1)
modes = st.sampled_from(["atomic", "leased"]) | odd_texts
policies = st.sampled_from(["default", "messages"]) | keys

ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "reserve": {
        "scope": scopes,
        "key": keys,
        "fingerprint": bodies,
        "mode": modes,
        "lease": intervals,
        "fields": jsons,
        "state": jsons,
        "token": st.none() | st.uuids(),
        "policy": policies,
    },
    "complete": {
        "scope": scopes,
        "key": keys,
        "token": st.none() | st.uuids(),
        "status": numbers,
        "headers": headers,
        "body": bodies,
    },
    "defer": {
        "scope": scopes,
        "key": keys,
        "token": st.none() | st.uuids(),
        "retry_in": intervals,
        "reason": keys,
    },
    "extend": {"scope": scopes, "key": keys, "token": st.none() | st.uuids(), "lease": intervals},
    "checkpoint": {
        "scope": scopes,
        "key": keys,
        "token": st.none() | st.uuids(),
        "recovery_point": keys,
        "state": jsons,
    },
    "lookup": {"scope": scopes, "key": keys},
    "once": {"scope": scopes, "key": keys, "policy": policies},
    "once_many": {"scope": scopes, "keys": st.none() | st.lists(keys, max_size=5), "policy": policies},
    "downstream_key": {"scope": scopes, "key": keys, "step": keys},
    "fingerprint": {
        "method": keys,
        "path": keys,
        "body": bodies,
        "content_type": types,
        "ignore": st.none() | st.lists(odd_texts, max_size=3),
        "include": st.none() | st.lists(odd_texts, max_size=3),
    },
    "fingerprint_fields": {
        "body": bodies,
        "content_type": types,
        "ignore": st.none() | st.lists(odd_texts, max_size=3),
    },
    "http_reserve": {
        "scope": scopes,
        "key_header": keys,
        "method": st.sampled_from(["POST", "GET"]) | keys,
        "path": keys,
        "body": bodies,
        "content_type": types,
        "mode": modes,
        "lease": intervals,
        "state": jsons,
        "policy": policies,
    },
    "http_complete": {
        "scope": scopes,
        "key": keys,
        "token": st.none() | st.uuids(),
        "status": numbers,
        "headers": headers,
        "body": bodies,
    },
    "claim_lapsed": {"max_rows": numbers, "lease": intervals, "policy": policies, "scope": scopes, "key": keys},
    "resolve": {
        "scope": scopes,
        "key": keys,
        "action": st.sampled_from(["complete", "release", "retry"]) | odd_texts,
        "reason": keys,
        "attempt": numbers,
        "force": st.none() | st.booleans(),
        "status": numbers,
        "headers": headers,
        "body": bodies,
    },
    "history": {"scope": scopes, "key": keys},
    "forget": {"scope": scopes, "key": keys},
    "purge": {"max_rows": numbers},
}
AS_JSONB = {"fields", "state", "headers"}


@pytest.fixture
def session(db: Database) -> Iterator[psycopg.Connection]:
    connection = db.connect(autocommit=True)
    connection.execute(f"set statement_timeout = '{LONGEST_S} s'")
    return connection


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_call_with_any_arguments_answers_or_is_refused_as_the_contract_says(
    name: str, session: psycopg.Connection
) -> None:
    @EXAMPLES
    @given(arguments=st.fixed_dictionaries(ARGUMENTS[name]))
    def attempt(arguments: dict[str, Any]) -> None:
        named = ", ".join(f"{argument} => %({argument})s" for argument in arguments)
        given_ = {
            argument: Jsonb(value) if argument in AS_JSONB and value is not None else value
            for argument, value in arguments.items()
        }
        began = time.monotonic()
        with session.transaction(force_rollback=True):
            try:
                session.execute(f"select * from idem.{name}({named})", given_).fetchall()
            except psycopg.Error as error:
                refused(error)
        assert time.monotonic() - began < LONGEST_S

    attempt()


def refused(error: psycopg.Error, *, has_detail: bool = True) -> None:
    """It is an error of the contract, with its small JSON, and nothing else."""
    assert error.sqlstate in CONTRACT, f"{error.sqlstate}: {error}"
    if not has_detail:
        return
    detail = error.diag.message_detail or "{}"
    assert re.fullmatch(r"[a-z_]+", json.loads(detail)["code"])
    assert len(detail) < 4000


COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["ttl", "lease", "retry_after", "min_retention", "tombstone"], intervals),
    "on_lapse": st.sampled_from(["hold", "retry"]) | odd_texts,
    **dict.fromkeys(["max_attempts", "max_claims", "max_batch", "max_body_bytes"], numbers),
    **dict.fromkeys(["key_min_length", "key_max_length"], numbers),
    "key_pattern": st.sampled_from(["^[a-z]+$", "(", "[", "a{99999}", "(a*)*b"]) | odd_texts | st.none(),
    "methods": st.none() | st.lists(odd_texts, max_size=3),
    "release_statuses": st.none() | st.lists(numbers, max_size=3),
    "drop_headers": st.none() | st.lists(odd_texts, max_size=3),
    "ignore": st.none() | st.lists(odd_texts, max_size=3),
    "include": st.none() | st.lists(odd_texts, max_size=3),
    "profile": st.sampled_from(["ietf", "stripe"]) | odd_texts,
    "problem_type_base": keys,
    "replay_header": keys,
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_policy_takes_a_value_that_works_or_refuses_it(column: str, session: psycopg.Connection) -> None:
    @EXAMPLES
    @given(value=COLUMNS[column], header=odd_texts)
    def attempt(value: Any, header: str) -> None:
        with session.transaction(force_rollback=True):
            try:
                with session.transaction():
                    session.execute(f"insert into idem.policies (name, {column}) values ('fuzzed', %s)", [value])
            except psycopg.Error as error:
                refused(error, has_detail=False)
                return
            for call in (
                "idem.reserve('shop', %s, policy => 'fuzzed')",
                "idem.http_reserve('shop', %s, 'POST', '/', policy => 'fuzzed')",
                "idem.once('shop', %s, policy => 'fuzzed')",
            ):
                try:
                    with session.transaction(force_rollback=True):
                        session.execute(f"select * from {call}", [header]).fetchall()
                except psycopg.Error as error:
                    refused(error)

    attempt()

"""I2: every attempt after completion gets the same status, the same headers in the same order, the same bytes."""

import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import complete, lookup, reserve
from tests.support.database import Database

BODIES = {
    "all byte values": bytes(range(256)),
    "json that jsonb would rewrite": b'{"b":1,  "a":1.0,"a":2}',
    "empty": b"",
    "none": None,
    "a megabyte": bytes(range(256)) * 4096,
    "falsy json": b"0",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("mode", ["atomic", "leased"])
def test_i2_the_answer_comes_back_byte_for_byte(db: Database, mode: str, body: bytes | None) -> None:
    connection = db.connect()
    headers = [["Link", "</a>"], ["content-type", "application/json"], ["Link", "</b>"]]
    owner = reserve(connection, "k", mode=mode)
    if mode == "leased":
        connection.commit()
    complete(connection, "k", owner.token, status=201, headers=Jsonb(headers), body=body)
    connection.commit()
    for answer in (reserve(connection, "k"), reserve(connection, "k", mode="leased"), lookup(connection, "k")):
        assert (answer.status, answer.headers, answer.body) == (201, headers, body)


def test_i2_an_answer_without_status_and_headers_is_an_answer(db: Database) -> None:
    connection = db.connect()
    complete(connection, "k", reserve(connection, "k").token)
    connection.commit()
    answer = reserve(connection, "k")
    assert (answer.outcome, answer.status, answer.headers, answer.body) == ("replay", None, None, None)


def test_i2_no_answer_before_its_commit(db: Database) -> None:
    owner, other = db.connect(), db.connect()
    complete(owner, "k", reserve(owner, "k").token, status=201)
    answer = reserve(other, "k")
    assert (answer.outcome, answer.status) == ("in_progress", None)

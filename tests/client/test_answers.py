"""What an application may hand over as its answer, and that it comes back unchanged."""

from typing import Any

import psycopg
import pytest

from pyidem import Response
from tests.client.flavours import Client, OpenClient

EVERY_BYTE = bytes(range(256))
JSON = (("content-type", "application/json"),)


@pytest.mark.parametrize(
    ("body", "stored", "headers"),
    [
        (None, None, ()),
        (b"", b"", ()),
        ("", b"", ()),
        (b"null", b"null", ()),
        (EVERY_BYTE, EVERY_BYTE, ()),
        (bytearray(b"\0"), b"\0", ()),
        (memoryview(b"ab"), b"ab", ()),
        ("caf\xe9 \U0001f980", b"caf\xc3\xa9 \xf0\x9f\xa6\x80", ()),
        ({}, b"{}", JSON),
        ([], b"[]", JSON),
        (0, b"0", JSON),
        (False, b"false", JSON),
        ({"b": 1, "a": [None, "\xe9"]}, b'{"b":1,"a":[null,"\xc3\xa9"]}', JSON),
    ],
)
def test_a_body_comes_back_byte_for_byte(
    open_client: OpenClient, scope: str, body: Any, stored: bytes | None, headers: tuple[tuple[str, str], ...]
) -> None:
    client = open_client("sync-connection")
    expected = Response(200, headers, stored)
    for _ in range(2):
        with client.atomic(scope, "k") as op:
            if op.started:
                op.complete(200, body)
        assert op.response == expected


def test_every_flavour_stores_every_byte(client: Client, scope: str) -> None:
    for _ in range(2):
        with client.atomic(scope, "k") as op:
            if op.started:
                op.complete(200, EVERY_BYTE, [("Link", "<a>"), ("link", "<b>"), ("X", "")])
        assert op.response == Response(200, (("Link", "<a>"), ("link", "<b>"), ("X", "")), EVERY_BYTE)


def test_an_answer_needs_no_status(open_client: OpenClient, scope: str) -> None:
    client = open_client("sync-connection")
    for _ in range(2):
        with client.atomic(scope, "k") as op:
            if op.started:
                op.complete()
        assert op.response == Response(None, (), None)


@pytest.mark.parametrize("given", [[("Content-Type", "application/vnd.api+json")], (["CONTENT-TYPE", "text/x"],)])
def test_a_content_type_of_the_applications_own_is_kept(given: Any) -> None:
    assert Response.of(200, {}, given).headers == tuple((name, value) for name, value in given)


def test_a_json_content_type_is_added_after_the_other_headers() -> None:
    assert Response.of(200, {}, [("x", "1")]).headers == (("x", "1"), *JSON)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"body": float("nan")}, ValueError),
        ({"body": {"a": [float("inf")]}}, ValueError),
        ({"body": "\ud800"}, ValueError),
        ({"body": ["\ud800"]}, ValueError),
        ({"body": object()}, TypeError),
        ({"body": {1, 2}}, TypeError),
        ({"status": "201"}, TypeError),
        ({"status": 2**31}, ValueError),
        ({"status": -(2**31) - 1}, ValueError),
        ({"status": True}, TypeError),
        ({"status": 201.0}, TypeError),
        ({"headers": {"a": "b"}}, TypeError),
        ({"headers": "ab"}, TypeError),
        ({"headers": ["ab"]}, TypeError),
        ({"headers": [("a", "b", "c")]}, TypeError),
        ({"headers": [("a", 1)]}, TypeError),
        ({"headers": [(b"a", "b")]}, TypeError),
        ({"headers": [("", "b")]}, ValueError),
        ({"headers": [("a b", "c")]}, ValueError),
        ({"headers": [("a", "b\r\nc: d")]}, ValueError),
        ({"headers": [("a", "\0")]}, ValueError),
        ({"headers": [("a", "\ud800")]}, ValueError),
    ],
)
def test_what_cannot_be_stored_is_refused_before_anything_is_sent(
    open_client: OpenClient, scope: str, answer: dict[str, Any], error: type[Exception]
) -> None:
    client = open_client("sync-connection")
    with client.atomic(scope, "k") as op:
        with pytest.raises(error):
            op.complete(**answer)
        op.complete(204)
    assert op.response == Response(204)


def test_state_that_is_no_json_is_refused_before_the_key_is_reserved(open_client: OpenClient, scope: str) -> None:
    client = open_client("sync-connection")
    with pytest.raises(ValueError, match="JSON"):
        client.idem.leased(scope, "k", state=float("nan"))
    assert client.lookup(scope, "k").outcome == "absent"


@pytest.mark.parametrize("state", ["\0", {"a": ["b\0"]}, {"\0": 1}, "\\\0"])
def test_state_with_a_nul_which_no_jsonb_can_hold_is_refused_before_the_key_is_reserved(
    open_client: OpenClient, scope: str, state: Any
) -> None:
    client = open_client("sync-connection")
    with pytest.raises(ValueError, match="NUL"):
        client.idem.leased(scope, "k", state=state)
    with client.leased(scope, "l", state="\\u0000") as op:  # a backslash, and no NUL
        assert op.state == "\\u0000"
        with op.transaction(), pytest.raises(ValueError, match="NUL"):
            op.checkpoint("done", state)
        op.complete()


@pytest.mark.own_surroundings
@pytest.mark.parametrize(
    "setting",
    [
        "datestyle=German, DMY",
        "intervalstyle=iso_8601",
        "timezone=America/St_Johns",
        "bytea_output=escape",
        "client_encoding=LATIN1",
        "default_transaction_isolation=serializable",
    ],
)
def test_session_settings_of_the_application_do_not_matter(open_client: OpenClient, scope: str, setting: str) -> None:
    client = open_client("sync-pool", options=f"-c {setting.replace(' ', chr(92) + ' ')}")
    for _ in range(2):
        with client.atomic(scope, "k") as op:
            if op.started:
                op.complete(200, EVERY_BYTE, [("x-note", "é")])
        assert op.response == Response(200, (("x-note", "é"),), EVERY_BYTE)
    with client.leased(scope, "l", state="é") as op:
        assert op.state == "é"
        assert client.finish(op.extend()).tzinfo is not None
        op.complete()
    with client.leased(scope, "l", fingerprint=b"other") as op:
        assert op.outcome == "mismatch"


def test_factories_of_the_applications_connection_do_not_matter(open_client: OpenClient, scope: str) -> None:
    client = open_client("sync-connection")
    client.origin.row_factory = psycopg.rows.scalar_row
    client.origin.cursor_factory = psycopg.RawCursor
    for _ in range(2):
        with client.atomic(scope, "k") as op:
            if op.started:
                op.complete(200, b"x")
        assert op.response == Response(200, (), b"x")

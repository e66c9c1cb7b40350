"""Whatever a body holds, it has a fingerprint, soon and in little memory."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.database import Database

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"
MIB = 1 << 20


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def objects(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


HOSTILE = {
    "nested 101 deep": (JSON, nested(101)),
    "nested 10,000 deep": (JSON, nested(10_000)),
    "objects 10,000 deep": (JSON, objects(10_000)),
    "nested a million deep": (JSON, b"[" * MIB),
    "a hundred deep, and wide below": (JSON, b"[" * 98 + b"1e1," * 60_000 + b"1" + b"]" * 98),
    "a huge exponent": (JSON, b"[1e131071]"),
    "an exponent beyond all numbers": (JSON, b"[1e999999999]"),
    "an exponent below all numbers": (JSON, b"[1e-999999999]"),
    "an exponent of many digits": (JSON, b"[1e" + b"9" * 100_000 + b"]"),
    "a thousand huge exponents": (JSON, b"[" + b"1e131071," * 999 + b"1e131071]"),
    "as many huge exponents as fit": (JSON, b"[" + b"1e131071," * 110_000 + b"1]"),
    "a number of a million digits": (JSON, b"1" * MIB),
    "a number of a hundred thousand digits": (JSON, b"1" * 100_000),
    "an escaped NUL": (JSON, rb'{"a": "\u0000"}'),
    "an escaped NUL in a name": (JSON, rb'{"\u0000": 1}'),
    "a lone surrogate": (JSON, rb'["\ud800"]'),
    "a surrogate of the wrong kind": (JSON, rb'["\udc00\ud800"]'),
    "a NUL": (JSON, b'["\0"]'),
    "invalid UTF-8": (JSON, b'["\xff"]'),
    "an encoded surrogate": (JSON, b'["\xed\xa0\x80"]'),
    "an overlong encoding": (JSON, b'["\xc0\xaf"]'),
    "UTF-16": (JSON, '{"a": 1}'.encode("utf-16")),
    "a byte order mark": (JSON, b"\xef\xbb\xbf{}"),
    "nothing": (JSON, b""),
    "blanks": (JSON, b" \n"),
    "no end": (JSON, b'{"a": [1, 2'),
    "NaN": (JSON, b"[NaN, Infinity]"),
    "half a million elements": (JSON, b"[" + b"1," * (MIB // 2 - 2) + b"1]"),
    "a quarter of a million arrays": (JSON, b"[" + b"[1]," * (MIB // 4 - 2) + b"1]"),
    "as many arrays with exponents": (JSON, b"[" + b"[1]," * (MIB // 4 - 9) + b"1e1]"),
    "a member nested 1,000 deep that comes again": (JSON, b'{"a":' + nested(1_000) + b',"a":1}'),
    "a member nested 5,000 deep beside an exponent": (JSON, b'[1e1,{"a":' + nested(5_000) + b',"a":1}]'),
    "a hundred thousand repeated members": (JSON, b"{" + b'"a":1,' * 100_000 + b'"a":1}'),
    "a name of half a megabyte above many leaves": (
        JSON,
        b'{"' + b"n" * (MIB // 2) + b'": [' + b"1," * 900 + b"1]}",
    ),
    "long names within long names": (JSON, (b'{"' + b"n" * 400 + b'":') * 90 + b"[" + b"1," * 900 + b"1]" + b"}" * 90),
    "as many quotes as fit": (JSON, b'["' + rb"\"" * (MIB // 2 - 10) + b'"]'),
    "as many zeros as fit": (JSON, b"[" + b"1.0," * (MIB // 4 - 10) + b"1]"),
    "text full of zeros": (JSON, b'["' + b"1.0," * (MIB // 4 - 10) + b'", 1.0]'),
    "twenty megabytes": (JSON, b"[" + b"1," * (10 * MIB) + b"1]"),
    "a form of half a million fields": (FORM, b"a&" * (MIB // 2)),
    "a form of ten thousand fields": (FORM, b"a=1&" * 9_999 + b"a=1"),
    "a form of ten thousand names": (FORM, b"&".join(b"n%d=%%41" % n for n in range(9_999))),
    "a form of percent signs": (FORM, b"%" * MIB),
    "a form of encoded bytes": (FORM, b"a=" + b"%ff" * 100_000),
    "a form of more encoded bytes": (FORM, b"a=" + b"%ff" * (MIB // 3)),
    "a form of bytes": (FORM, bytes(range(256)) * 4096),
    "twenty megabytes of a form": (FORM, b"a" * (20 * MIB)),
    "multipart without parts": (MULTIPART, b"--b--"),
    "multipart without an end": (MULTIPART, b"--b\r\n\r\n1"),
    "multipart without its boundary": ("multipart/form-data", b"--b\r\n\r\n1\r\n--b--"),
    "ten thousand parts": (
        MULTIPART,
        b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 10_000 + b"--b--",
    ),
    "a million boundaries": (MULTIPART, b"\r\n--b" * (MIB // 5)),
    "a part with a hundred thousand header lines": (MULTIPART, b"--b\r\n" + b"a:b\r\n" * 100_000 + b"\r\n1\r\n--b--"),
    "sixteen megabytes of a file": (
        MULTIPART,
        b'--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n'
        + bytes(range(128, 256)) * (131_072 - 1)
        + b"\r\n--b--",
    ),
    "a hundred megabytes of a file": (MULTIPART, b"--b\r\n\r\n" + b"\xff" * (100 * MIB) + b"\r\n--b--"),
}
SEPARATORS = [b"\r\n", b" ", b"\xff", b"\0"]
SECONDS = 30


@pytest.fixture
def session(shared_db: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_db.dsn, autocommit=True) as connection:
        connection.execute(f"set statement_timeout = '{SECONDS}s'")
        yield connection


@pytest.mark.parametrize(("content_type", "body"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_body_has_a_fingerprint_like_any_other(
    content_type: str, body: bytes, session: psycopg.Connection
) -> None:
    call = (
        "select f, idem.fingerprint_fields(%(body)b, %(type)s) from idem.fingerprint('POST', '/', %(body)b, %(type)s) f"
    )

    session.execute(call, {"body": b"{}", "type": content_type})
    before = peak(session)
    fingerprint, fields = session.execute(call, {"body": body, "type": content_type}).fetchone() or ()

    assert len(fingerprint) == 16
    assert len(fields) <= 1000
    assert peak(session) - before < 160 * MIB + 10 * len(body), (peak(session) - before) // MIB


def peak(session: psycopg.Connection) -> int:
    """The most memory that the session's backend has had, in bytes."""
    status = Path(f"/proc/{session.info.backend_pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


@settings(max_examples=100, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.lists(
            st.sampled_from(rb'{ } [ ] , : " 1 e - . \ \u0000 \ud800 a & = % + %41 --b name= ;'.split() + SEPARATORS),
            max_size=30,
        ).map(b"".join),
        min_size=10,
        max_size=10,
    )
)
def test_no_body_raises(session: psycopg.Connection, bodies: list[bytes]) -> None:
    found = session.execute(
        "select idem.fingerprint('POST', '/', b, t), idem.fingerprint_fields(b, t)"
        " from unnest(%s::bytea[]) as b, unnest(%s::text[]) as t",
        [bodies, [JSON, FORM, MULTIPART, "text/plain", ""]],
    ).fetchall()

    assert len(found) == 50

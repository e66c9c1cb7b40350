"""Forms are the same request if their fields are, in order; multipart bodies if their parts are."""

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.request.test_json_by_value import classes, fields, fingerprints
from tests.support.database import Database

FORM = "application/x-www-form-urlencoded"
QUIET = settings(
    max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@pytest.fixture(scope="module")
def session(shared_db: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_db.dsn, autocommit=True) as connection:
        yield connection


words = st.sampled_from(
    [b"", b"a", b"b", b" ", b"&", b"=", b"%", b"%4", b"+", b"\\", b"\xc3\xa9", b"\xff", b"\0", b"/~"]
)
pairs = st.lists(st.tuples(words, words), max_size=3)


@st.composite
def urlencoded(draw: st.DrawFn, form: list[tuple[bytes, bytes]]) -> bytes:
    return b"&".join(
        draw(st.sampled_from([b"", b"&"]))
        + draw(encoded(name))
        + (b"=" + draw(encoded(value)) if value or not name or draw(st.booleans()) else b"")
        for name, value in form
    )


@st.composite
def encoded(draw: st.DrawFn, text: bytes) -> bytes:
    return b"".join(draw(st.sampled_from(list(spellings(byte)))) for byte in text)


def spellings(byte: int) -> Iterator[bytes]:
    yield b"%%%02x" % byte
    yield b"%%%02X" % byte
    if byte == ord(" "):
        yield b"+"
    if byte not in b"&=+%":
        yield bytes([byte])


@QUIET
@given(st.data())
def test_forms_are_equal_exactly_if_their_fields_are_in_order(session: psycopg.Connection, data: st.DataObject) -> None:
    form = data.draw(pairs)
    forms = [form, form, data.draw(st.permutations(form)), data.draw(pairs), form[:-1]]
    bodies = [data.draw(urlencoded(each)) for each in forms]

    assert classes(fingerprints(session, bodies, FORM)) == classes(tuple(each) for each in forms), bodies
    names = [{name for name, _ in each} for each in forms]
    assert [len(found) for found in fields(session, bodies, FORM)] == [len(each) for each in names]


def multipart(
    boundary: bytes, parts: list[tuple[bytes, ...]], *, preamble: bytes = b"", epilogue: bytes = b""
) -> bytes:
    return b"".join(
        [
            preamble,
            *(
                b"--" + boundary + b"\r\n" + b"".join(line + b"\r\n" for line in head) + b"\r\n" + content + b"\r\n"
                for *head, content in parts
            ),
            b"--" + boundary + b"--" + epilogue,
        ]
    )


A = b'Content-Disposition: form-data; name="a"'
B = b'Content-Disposition: form-data; name="b"; filename="b.bin"'
TEXT = b"Content-Type: text/plain"


@pytest.mark.parametrize(
    "body",
    [
        multipart(b"one", [(A, b"1"), (B, TEXT, b"\0\xff\r\n--on\r\n")]),
        multipart(b"two", [(A, b"1"), (B, TEXT, b"\0\xff\r\n--on\r\n")]),
        multipart(b"x y'()+_,-./:=?", [(A, b"1"), (B, TEXT, b"\0\xff\r\n--on\r\n")]),
        multipart(b"one", [(A, b"1"), (TEXT, B, b"\0\xff\r\n--on\r\n")]),
        multipart(b"one", [(A, b"1"), (b"content-type:text/plain ", B, b"\0\xff\r\n--on\r\n")]),
        multipart(b"one", [(A, b"1"), (B, TEXT, b"\0\xff\r\n--on\r\n")], preamble=b"hello\r\n", epilogue=b"\r\nbye"),
    ],
)
def test_what_separates_the_parts_does_not_count(body: bytes, session: psycopg.Connection) -> None:
    first = multipart(b"one", [(A, b"1"), (B, TEXT, b"\0\xff\r\n--on\r\n")])

    assert digest(session, body) == digest(session, first)


@pytest.mark.parametrize(
    "parts",
    [
        [(A, b"2"), (B, TEXT, b"2")],
        [(B, TEXT, b"2"), (A, b"1")],
        [(A, b"1"), (B, b"2")],
        [(A, b"1")],
        [(A, b"1"), (B, TEXT, b"2"), (A, b"1")],
        [(A, b"1"), (B.replace(b"b.bin", b"c.bin"), TEXT, b"2")],
        [(A.replace(b'"a"', b'"c"'), b"1"), (B, TEXT, b"2")],
        [(A, b"1"), (B, b"Content-Type: text/html", b"2")],
        [(A, b"1\r\n"), (B, TEXT, b"2")],
    ],
)
def test_everything_in_the_parts_counts(parts: list[tuple[bytes, ...]], session: psycopg.Connection) -> None:
    first = multipart(b"one", [(A, b"1"), (B, TEXT, b"2")])

    assert digest(session, multipart(b"one", parts)) != digest(session, first)


@pytest.mark.parametrize(
    ("head", "pointer"),
    [
        (b'Content-Disposition: form-data; name="a"', "/a"),
        (b"content-disposition:form-data;name=a", "/a"),
        (b'Content-Disposition: form-data; filename="x; name=y"; name="a"', "/a"),
        (b'Content-Disposition: form-data; name="a b/~"', "/a b~1~0"),
        (b'Content-Disposition: form-data; name="\xc3\xa9"', "/é"),
        (b'Content-Disposition: form-data; name="\\"q\\""', '/\\"q\\"'),
        (b"Content-Type: text/plain", "/"),
    ],
)
def test_a_part_is_named_by_its_disposition(head: bytes, pointer: str, session: psycopg.Connection) -> None:
    body = multipart(b"one", [(head, b"1")])

    assert list(fields(session, [body], "multipart/form-data; boundary=one")[0]) == [pointer]


@pytest.mark.parametrize(
    "content_type",
    [
        'multipart/form-data; boundary="one"',
        "Multipart/Form-Data;BOUNDARY=one",
        "multipart/form-data; charset=utf-8; boundary=one; x=y",
    ],
)
def test_the_boundary_is_read_as_http_writes_it(content_type: str, session: psycopg.Connection) -> None:
    body = multipart(b"one", [(A, b"1")])

    assert list(fields(session, [body], content_type)[0]) == ["/a"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--one",
        b"--one\r\n\r\n1",
        b"--one\r\n\r\n1\r\n--one",
        b"--one\r\nno blank line\r\n--one--",
        b"--one and more\r\n\r\n1\r\n--one--",
        multipart(b"another", [(A, b"1")]),
    ],
)
def test_what_is_no_multipart_is_taken_by_its_bytes(body: bytes, session: psycopg.Connection) -> None:
    assert list(fields(session, [body], "multipart/form-data; boundary=one")[0]) == [""]


def digest(session: psycopg.Connection, body: bytes) -> bytes:
    boundary = body[body.index(b"--") + 2 : body.index(b"\r\n", body.index(b"--"))].decode()
    return fingerprints(session, [body], f'multipart/form-data; boundary="{boundary}"')[0]

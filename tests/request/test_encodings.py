"""Fingerprints in databases that are not in UTF-8."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from pyidem.embedded import Cluster
from tests.request.test_json_by_value import fields, fingerprints
from tests.support.database import OWNER, ROOT, run_psql

JSON = "application/json"
BODIES = {
    JSON: [
        b'{"a": 1}',
        '{"é": "€"}'.encode(),
        rb'{"\u00e9": "\u20ac"}',
        rb'["\ud83d\ude00"]',
        '["\U0001f600"]'.encode(),
        b'["\xff"]',
        rb'["\u0000"]',
    ],
    "application/x-www-form-urlencoded": [b"a=1", b"b=%C3%A9", "é=€".encode(), b"\xff=%ff", b"%00=\0"],
    'multipart/form-data; boundary="b"': [
        b'--b\r\nContent-Disposition: form-data; name="\xe2\x82\xac\xff"\r\n\r\n\xff\0\r\n--b--',
        b'--b\r\nContent-Disposition: form-data; name="\xe2\x82\xac"\r\n\r\n\xff\0\r\n--b--',
    ],
    "text/plain": [b"\xff\0", "€".encode()],
}


@pytest.fixture(scope="module", params=["UTF8", "LATIN1", "SQL_ASCII"])
def session(request: pytest.FixtureRequest, server: Cluster) -> Iterator[psycopg.Connection]:
    name = f"in_{request.param.lower()}"
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(
            sql.SQL("create database {} encoding {} locale 'C' template template0 owner {}").format(
                sql.Identifier(name), sql.Literal(request.param), sql.Identifier(OWNER)
            )
        )
        try:
            run_psql(server, server.dsn(name, user=OWNER), ROOT / "sql" / "install.sql")
            with psycopg.connect(server.dsn(name), autocommit=True, client_encoding="UTF8") as connection:
                yield connection
        finally:
            admin.execute(sql.SQL("drop database {}").format(sql.Identifier(name)))


@pytest.mark.parametrize("content_type", BODIES)
def test_every_body_has_a_fingerprint_of_its_own(content_type: str, session: psycopg.Connection) -> None:
    bodies = BODIES[content_type]
    apart = [body for body in bodies if body not in (rb'{"\u00e9": "\u20ac"}', rb'["\ud83d\ude00"]')]

    assert len(fields(session, bodies, content_type)) == len(bodies)
    assert len(fingerprints(session, bodies, content_type)) == len(bodies)
    assert len(set(fingerprints(session, apart, content_type))) == len(apart)


def test_what_the_encoding_can_hold_is_compared_by_value(session: psycopg.Connection) -> None:
    assert len(set(fingerprints(session, [b'{"a": 1, "b": 2}', rb'{"b": 2e0, "\u0061": 1}'], JSON))) == 1

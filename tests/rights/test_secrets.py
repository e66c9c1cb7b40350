"""What a caller sends stays with the caller: no body, header, state or token is in an error, in the log, or in another
session's reach."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.rights.conftest import GRANTS, Login
from tests.support.calls import reserve
from tests.support.database import Database
from tests.support.waiting import Background

TOKEN = UUID("5ec2e700-5ec2-4e70-8ec2-5ec2e7005ec2")
OTHER = UUID("0defaced-0def-4ced-8def-0defaced0def")
SECRET = "very-secret-value"
MARKS = [SECRET, SECRET.encode().hex(), str(TOKEN), str(OTHER), TOKEN.hex, OTHER.hex]

# Every call that takes a secret, with arguments that are refused for some other reason, or because of the secret.
BODY, HEADERS, STATE = SECRET.encode(), Jsonb([["x", SECRET]]), Jsonb({"card": SECRET})
REFUSED: list[tuple[str, list[Any]]] = [
    ("select idem.complete('shop', 'k', %s, 201, %s, %s)", [OTHER, HEADERS, BODY]),
    ("select idem.complete('shop', 'none', %s, 201, %s, %s)", [TOKEN, HEADERS, BODY]),
    ("select idem.complete('shop', 'done', %s, 500, %s, %s)", [TOKEN, HEADERS, BODY]),
    ("select idem.complete('shop', 'k', %s, 201, %s, %s)", [TOKEN, Jsonb({"x": SECRET}), BODY]),
    ("select idem.complete('shop', 'k', %s, 201, %s, %s)", [TOKEN, Jsonb([["x", SECRET, SECRET]]), BODY]),
    ("select idem.http_complete('shop', 'k', %s, 201, %s, %s)", [OTHER, HEADERS, BODY]),
    ("select idem.http_complete('shop', 'k', %s, null, %s, %s)", [TOKEN, HEADERS, BODY]),
    ("select idem.http_complete('shop', 'k', %s, 201, %s, %s)", [TOKEN, Jsonb([SECRET]), BODY]),
    ("select idem.release('shop', 'k', %s)", [OTHER]),
    ("select idem.defer('shop', 'k', %s)", [OTHER]),
    ("select idem.defer('shop', 'k', %s, '-1 s')", [TOKEN]),
    ("select idem.extend('shop', 'k', %s)", [OTHER]),
    ("select idem.extend('shop', 'k', %s, '0')", [TOKEN]),
    ("select idem.checkpoint('shop', 'k', %s, 'half', %s)", [OTHER, STATE]),
    ("select idem.checkpoint('shop', 'k', %s, '', %s)", [TOKEN, STATE]),
    ("select idem.reserve('shop', 'new', %s, 'other', null, null, %s, %s)", [BODY, STATE, TOKEN]),
    ("select idem.reserve('shop', 'new', %s, 'leased', '-1 s', null, %s, %s)", [BODY, STATE, TOKEN]),
    ("select idem.reserve('shop', 'new', %s, 'atomic', null, %s, %s, %s)", [BODY, Jsonb([SECRET]), STATE, TOKEN]),
    ("select idem.reserve('shop', 'new', %s, 'atomic', null, null, %s, %s, 'no')", [BODY, STATE, TOKEN]),
    # not completed in its transaction
    ("select idem.reserve('shop', 'new', %s, 'atomic', null, null, %s, %s)", [BODY, STATE, TOKEN]),
    (
        "select idem.http_reserve('', '\"k\"', 'POST', '/', %s, 'text/plain', state => %s, token => %s)",
        [BODY, STATE, TOKEN],
    ),
    (
        "select idem.http_reserve('shop', '\"k\"', 'POST', null, %s, 'text/plain', state => %s, token => %s)",
        [BODY, STATE, TOKEN],
    ),
    ("select idem.run_end('shop', 'k', %s, null, row(201, %s, %s))", [BODY, HEADERS, BODY]),
    ("select idem.run_end('shop', 'k', %s, %s, row(201, %s, %s))", [BODY, OTHER, HEADERS, BODY]),
    ("select idem.run('shop', 'new', %s, 'public.echo(jsonb)', %s)", [BODY, Jsonb({"x": SECRET})]),
]


@pytest.fixture
def client(login: Login) -> psycopg.Connection:
    """A client with a leased key and one that is completed."""
    connection = login()
    for key in ("k", "done"):
        reserve(connection, key, scope="shop", mode="leased", state=STATE, token=TOKEN)
    connection.execute("select idem.complete('shop', 'done', %s, 201, %s, %s)", [TOKEN, HEADERS, BODY])
    return connection


def test_no_error_and_no_line_of_the_log_shows_a_secret(
    client: psycopg.Connection, admin: psycopg.Connection, server_log: Callable[[], str]
) -> None:
    admin.execute(
        "create function public.echo(args jsonb) returns idem.response language sql"
        " as $$select row(201, args, null)::idem.response$$"
    )
    notices: list[str] = []
    client.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    for statement, arguments in REFUSED:
        told = refusal(client, statement, arguments)
        assert told, f"not refused: {statement}"
        assert not [mark for mark in MARKS if mark in told], statement

    logged = server_log()
    assert logged.count(" ERROR: ") >= len(REFUSED)
    assert not [mark for mark in MARKS if mark in logged]
    assert notices == []


def refusal(connection: psycopg.Connection, statement: str, arguments: list[Any]) -> str | None:
    """Return everything that the error of a statement tells, in one text."""
    try:
        connection.execute(statement.encode(), arguments)
    except psycopg.Error as error:
        fields = [getattr(error.diag, name) for name in dir(error.diag) if not name.startswith("_")]
        return "\n".join([str(error), *map(str, fields)]).lower()
    return None


@pytest.mark.parametrize("grant", GRANTS)
def test_what_other_roles_see_of_a_session_at_work_has_no_secret(
    grant: str,
    db: Database,
    client: psycopg.Connection,
    login: Login,
    in_thread: Callable[[Callable[[], Any]], Background[Any]],
) -> None:
    holder, looker = db.connect(user=client.info.user), login(grant)
    holder.execute("select idem.extend('shop', 'k', %s)", [TOKEN])
    completing = in_thread(
        lambda: client.execute("select idem.complete('shop', 'k', %s, 201, %s, %s)", [TOKEN, HEADERS, BODY]).fetchone()
    )
    db.wait_until_blocked(client)
    seen = repr(looker.execute("select a.* from pg_stat_activity as a").fetchall())
    seen += repr(looker.execute("select l.* from pg_locks as l").fetchall())
    seen += repr(holder.execute("select a.query from pg_stat_activity as a").fetchall())
    holder.commit()

    assert completing.result() == (True,)
    assert "idem.complete" in seen
    assert not [mark for mark in MARKS if mark in seen]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("grant", ["monitor", "operator"])
def test_no_view_shows_a_secret(grant: str, login: Login) -> None:
    looker = login(grant)
    shown = repr(looker.execute("select k.* from idem.keys as k").fetchall())

    assert "done" in shown
    assert not [mark for mark in MARKS if mark in shown]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("grant", GRANTS)
def test_the_planner_tells_nothing_of_what_is_stored(grant: str, login: Login, admin: psycopg.Connection) -> None:
    admin.execute("analyze")
    looker = login(grant)
    statistics = looker.execute("select * from pg_stats where schemaname in ('idem', 'idem_private')").fetchall()

    assert statistics == []


@pytest.mark.usefixtures("client")
def test_a_token_is_told_to_its_owner_alone(login: Login) -> None:
    other = login()
    answers = [
        other.execute("select r.* from idem.reserve('shop', 'k') as r").fetchall(),
        other.execute("select r.* from idem.reserve('shop', 'done') as r").fetchall(),
        other.execute("select r.* from idem.lookup('shop', 'k') as r").fetchall(),
        other.execute("select r.* from idem.http_reserve('shop', 'k', 'POST', '/') as r").fetchall(),
    ]

    assert [mark for mark in (str(TOKEN), TOKEN.hex) if mark in repr(answers)] == []
    assert TOKEN not in {value for rows in answers for row in rows for value in row if isinstance(value, UUID)}

"""Every kind of call does the same wherever the database is set up in another way. `make surroundings` runs more."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, timedelta
from hashlib import sha256

import psycopg
import pytest
from psycopg import sql
from psycopg_pool import ConnectionPool

from pyidem import AsyncIdem, HttpCall, Idem, KeyReused, LostReservation
from pyidem.embedded import Cluster
from tests.conftest import SETTINGS, SETTINGS_OF_PARTS
from tests.support.calls import complete, lookup, once, reserve, set_policy
from tests.support.database import OWNER, ROOT, TEMPLATE, Database, new_database
from tests.support.server import Server, find_server
from tests.support.surroundings import (
    SURROUNDINGS,
    Surroundings,
    entrance,
    german_locale,
    has_german_messages,
    surrounded,
)

PLAIN = {name: value for name, value in SETTINGS.items() if name not in SETTINGS_OF_PARTS}
SERVER = find_server()
# the locale and the translations come with packages of their own
GERMAN = SERVER is not None and has_german_messages(SERVER.major)
AVAILABLE = [name for name in SURROUNDINGS if GERMAN or name != "german messages"]
EVERY_BYTE = bytes(range(256))
SCOPE = "café"


@pytest.fixture(scope="module")
def abroad(installation: Server) -> Iterator[Cluster]:
    """A server that knows another language, where that can be had."""
    with ExitStack() as stack:
        if GERMAN:
            stack.enter_context(german_locale())
        cluster = stack.enter_context(Cluster(installation.bindir, settings=PLAIN))
        with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
            admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(OWNER), cluster.password))
        yield cluster


@pytest.fixture(scope="module")
def origin(abroad: Cluster) -> Iterator[str]:
    with new_database(abroad, TEMPLATE, as_template=True) as database:
        database.psql(ROOT / "sql" / "install.sql", user=OWNER)
        yield database.name


@pytest.fixture(params=AVAILABLE)
def around(request: pytest.FixtureRequest) -> Surroundings:
    return SURROUNDINGS[request.param]


@pytest.fixture
def place(around: Surroundings, abroad: Cluster, origin: str) -> Iterator[Database]:
    with surrounded(abroad, origin, around) as database:
        database.enable_testing()
        with psycopg.connect(database.dsn, autocommit=True) as admin:
            set_policy(admin, "again", on_lapse="retry", lease="1 minute")
        yield database


@pytest.fixture
def pool(around: Surroundings, place: Database) -> Iterator[ConnectionPool]:
    with entrance(place, around) as dsn, ConnectionPool(dsn, min_size=1, max_size=2, open=True) as opened:
        yield opened


def test_every_kind_of_call_does_what_it_does_elsewhere(place: Database, pool: ConnectionPool) -> None:
    idem = Idem(pool)
    atomic(idem)
    leased(idem)
    over_http(idem)
    recovered(idem, place)
    marked(pool)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_text_is_text_where_psycopg_would_give_bytes(abroad: Cluster, origin: str, *, asynchronous: bool) -> None:
    with surrounded(abroad, origin, Surroundings(encoding="SQL_ASCII")) as database:
        if asynchronous:
            asyncio.run(on_an_async_connection(database.dsn))
            return
        with psycopg.connect(database.dsn) as connection:
            idem = Idem(connection)
            atomic(idem)
            leased(idem)
            over_http(idem)
            with idem.atomic(SCOPE, "joined", fingerprint=b"1", fields={"/a": "1"}, on=connection, commit=True) as op:
                assert op.started
                op.complete(201)
            with idem.atomic(SCOPE, "joined", fingerprint=b"2", fields={"/a": "2"}, on=connection, commit=True) as op:
                assert (op.outcome, op.mismatched) == ("mismatch", ["/a"])
            assert idem.once(SCOPE, "message", on=connection)
            connection.commit()
            assert idem.lookup(SCOPE, "leased").outcome == "completed"


async def on_an_async_connection(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        idem = AsyncIdem(connection)
        for outcome in ("started", "replay"):
            async with idem.atomic(SCOPE, "k") as op:
                assert op.outcome == outcome
                if op.started:
                    op.complete(201, {"name": "é"})
            assert json.loads(op.response.body or b"") == {"name": "é"}
        async with idem.leased(SCOPE, "l") as leased_op, leased_op.transaction():
            leased_op.complete(200)
        assert (await idem.lookup(SCOPE, "l")).outcome == "completed"


def atomic(idem: Idem[psycopg.Connection]) -> None:
    for _ in range(2):
        with idem.atomic(SCOPE, "atomic", fingerprint=sha256(b"1").digest()) as op:
            if op.started:
                op.complete(201, EVERY_BYTE, headers=[("x-name", "Zoë")])
        assert (op.response.status, op.response.body) == (201, EVERY_BYTE)
        assert list(op.response.headers) == [("x-name", "Zoë")]
    with idem.atomic(SCOPE, "atomic", fingerprint=sha256(b"2").digest()) as op:
        assert op.outcome == "mismatch"
    with pytest.raises(KeyReused):
        op.raise_for_outcome()


def leased(idem: Idem[psycopg.Connection]) -> None:
    with idem.leased(SCOPE, "leased", state={"name": "é"}) as op:
        with idem.leased(SCOPE, "leased") as other:
            assert other.outcome == "in_progress"
        with op.transaction():
            op.complete(200, {"ok": "é"})
    with idem.leased(SCOPE, "leased") as op:
        assert json.loads(op.response.body or b"") == {"ok": "é"}
    with pytest.raises(LostReservation):
        idem.complete(SCOPE, "leased", op.token, status=500)


def over_http(idem: Idem[psycopg.Connection]) -> None:
    request = {"method": "POST", "path": "/caf%C3%A9", "content_type": "application/json"}
    for body in ('{"name": "é", "n": 1}'.encode(), '{"n": 1.0, "name": "é"}'.encode(), b'{"name": "e"}'):
        with idem.atomic(SCOPE, HttpCall('"http"', body=body, **request)) as op:
            if op.started:
                op.complete(201, body)
        assert op.response.status == (422 if body == b'{"name": "e"}' else 201)


def recovered(idem: Idem[psycopg.Connection], place: Database) -> None:
    """An owner dies; its key lapses, is claimed, resolved, and taken over."""
    for key in ("claimed", "resolved", "retried"):
        idem.reserve(SCOPE, key, mode="leased", policy="again" if key == "retried" else "default")
    # psycopg reads text as bytes where the encoding is SQL_ASCII
    with psycopg.connect(place.dsn, autocommit=True, client_encoding="utf8") as later:
        later.execute("set idem.clock_offset = '2 minutes'")
        [row] = later.execute("select token from idem.claim_lapsed(key => 'claimed', scope => %s)", [SCOPE]).fetchall()
        assert complete(later, "claimed", row[0], scope=SCOPE, status=201)
        assert later.execute(
            "select idem.resolve(%s, 'resolved', 'release', %s)", [SCOPE, "nobody had heard of it: naïve"]
        ).fetchone() == (True,)
        again = reserve(later, "retried", scope=SCOPE, mode="leased", policy="again")
        assert (again.outcome, again.attempt) == ("started", 2)
        assert lookup(later, "claimed", scope=SCOPE).outcome == "completed"
        events = later.execute("select event, reason from idem.history(%s, 'resolved')", [SCOPE]).fetchall()
        assert ("resolved", "nobody had heard of it: naïve") in events


def marked(pool: ConnectionPool) -> None:
    for outcome in ("first", "duplicate"):
        with pool.connection() as connection:
            assert once(connection, "message", scope=SCOPE) == outcome


def test_a_refusal_is_known_by_its_code_whatever_the_language(pool: ConnectionPool) -> None:
    with pool.connection() as connection:
        token = reserve(connection, "k", scope=SCOPE).token
        complete(connection, "k", token, scope=SCOPE, status=201)
    idem = Idem(pool)
    with pytest.raises(LostReservation) as refusal:
        idem.complete(SCOPE, "k", token, status=500)
    assert refusal.value.sqlstate == "IK002"
    assert refusal.value.detail["code"] == "already_completed"


if GERMAN:

    def test_what_the_server_says_in_german_is_understood(abroad: Cluster, origin: str) -> None:
        """The language is the server's, and nothing depends on it."""
        with (
            surrounded(abroad, origin, SURROUNDINGS["german messages"]) as database,
            psycopg.connect(database.dsn) as connection,
            pytest.raises(psycopg.Error, match="existiert nicht"),
        ):
            connection.execute("select * from nowhere")


def test_a_day_has_24_hours_when_the_clocks_change(place: Database) -> None:
    """In Berlin the 28th of March 2027 has 23 hours."""
    with psycopg.connect(place.dsn) as connection:
        connection.execute(
            "select set_config('idem.clock_offset',"
            " (extract(epoch from timestamptz '2027-03-27 12:00+01' - clock_timestamp()) || ' seconds'), false)"
        )
        about = reserve(connection, "day", scope=SCOPE)
        assert about.expires_at.astimezone(UTC) - about.created_at.astimezone(UTC) == timedelta(hours=24)
        connection.rollback()


def test_a_scope_that_the_encoding_cannot_hold_is_refused_by_the_server(abroad: Cluster, origin: str) -> None:
    around = SURROUNDINGS["database in latin 1"]
    with (
        surrounded(abroad, origin, around) as database,
        psycopg.connect(database.dsn, client_encoding="UTF8") as connection,
    ):
        with pytest.raises(psycopg.errors.UntranslatableCharacter):
            connection.execute("select idem.lookup('日本', 'k')").fetchall()
        connection.rollback()
        assert lookup(connection, "k", scope=SCOPE).outcome == "absent"

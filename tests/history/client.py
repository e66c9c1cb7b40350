"""A client that does what it likes with a few keys until its time is over.

It is a process of its own, so that it can be killed, and writes down each call before it makes it. It knows no fault
injector: a lost connection is made anew, and a call whose fate is unknown is repeated with its token, as the reference
asks for.
"""

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from pyidem import Idem, IdempotencyError
from tests.history.record import FAIL, OK, UNKNOWN, Recorder
from tests.history.world import FAMILIES, SCOPE, Family

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DROPPED = ["Date", "Tue, 01 Dec 2026 00:00:00 GMT"]
_ISOLATION = ["read committed"] * 6 + ["repeatable read", "serializable"]
_REPETITIONS = 4


class Answer(NamedTuple):
    """What an attempt is going to answer. Its body begins with the attempt's name."""

    status: int
    headers: list[list[str]]
    body: bytes


class Client:
    """One client, with a connection of its own and a pool for the blocks of the Python package."""

    def __init__(self, dsn: str, recorder: Recorder, name: str, rng: Random) -> None:
        self._dsn = dsn
        self._recorder = recorder
        self._name = name
        self._rng = rng
        self._count = 0
        self._connection: psycopg.Connection | None = None
        self._pool = ConnectionPool(dsn, min_size=1, max_size=2, timeout=3, reconnect_timeout=0.2, open=True)
        self._idem: Idem[psycopg.Connection] = Idem(self._pool)

    def work(self, seconds: float) -> None:
        """Do something, again and again."""
        kinds = {
            self.atomic: 5,
            self.leased: 5,
            self.run: 3,
            self.once: 3,
            self.http: 3,
            self.http_leased: 2,
            self.block: 2,
            self.leased_block: 2,
            self.sweep: 3,
            self.resolve: 2,
            self.lookup: 3,
            self.purge: 2,
        }
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._count += 1
            [act] = self._rng.choices(list(kinds), list(kinds.values()))
            try:
                act()
            except (psycopg.OperationalError, psycopg.InterfaceError):
                self._disconnect()
                time.sleep(self._rng.uniform(0.01, 0.1))
            except (psycopg.Error, IdempotencyError):
                self._rollback()
        self._disconnect()
        self._pool.close()

    # what it does

    def atomic(self) -> None:
        key, token, fingerprint = self._key("again", "held", "kept"), uuid4(), self._fingerprint()
        with self._transaction(self._rng.choice(_ISOLATION)) as connection:
            row = self._reserve(connection, key, token, fingerprint, mode="atomic")
            if row.outcome != "started":
                return
            answer = self._answer()
            self._work(connection, "atomic", key, answer, row, fingerprint)
            self._linger()
            if self._rng.random() < 0.1:
                return
            call(connection, "complete", scope=SCOPE, key=key, token=token, **json_of(answer))
            self._commit(connection, key, token=token, attempt=row.attempt)

    def leased(self) -> None:
        key, token, fingerprint = self._key("again", "held", "kept", "stuck"), uuid4(), self._fingerprint()
        row = self._until_known(lambda: self._reserve_leased(key, token, fingerprint))
        if row is None or row.outcome != "started":
            return
        held = Held(key, token, row.attempt, row.created_at, fingerprint)
        self._linger()
        if self._rng.random() < 0.2:
            self._owner_call(held, "extend")
        if self._rng.random() < 0.2:
            self._owner_call(held, "checkpoint", recovery_point=self._rng.choice(["charged", "sent"]))
        if policy_of(key) == "stuck":
            return
        self._linger(longest=0.5)
        self._finish(held, "leased")

    def run(self) -> None:
        key, fingerprint, answer = self._key("again", "held", "kept"), self._fingerprint(), self._answer()
        arguments = {
            "op": self._op,
            "key": key,
            "fingerprint": fingerprint,
            "status": answer.status,
            "headers": answer.headers,
            "body": answer.body.hex(),
        }
        connection = self._connected()
        with self._recorded("run", commits=True, key=key, fingerprint=fingerprint) as seen:
            row = call(
                connection,
                "run",
                scope=SCOPE,
                key=key,
                fingerprint=fingerprint.encode(),
                handler="public.handle(jsonb)",
                args=Jsonb(arguments),
                policy=policy_of(key),
            )
            seen.update(shown(row))

    def once(self) -> None:
        key = self._key("mark")
        with self._transaction(self._rng.choice(_ISOLATION)) as connection:
            with self._recorded("once", key=key) as seen:
                seen["outcome"] = call(connection, "once", scope=SCOPE, key=key, policy=policy_of(key))[0]
            if seen["outcome"] != "first":
                return
            about = call(connection, "lookup", scope=SCOPE, key=key)
            self._work(connection, "once", key, Answer(0, [], b""), about, None)
            self._linger()
            self._commit(connection, key)

    def http(self) -> None:
        key, token, fingerprint = self._key("web"), uuid4(), self._fingerprint()
        with self._transaction("read committed") as connection:
            row = self._http_reserve(connection, key, token, fingerprint, mode="atomic")
            if row.status is not None:
                return
            answer = self._answer(self._rng.choice([201, 201, 201, 200, 404, 401, 503]))
            about = call(connection, "lookup", scope=SCOPE, key=key)
            self._work(connection, "http", key, answer, about, fingerprint)
            self._linger()
            verdict = self._http_complete(connection, key, token, answer)
            if verdict == "stored":
                self._commit(connection, key, token=token, attempt=row.attempt)

    def http_leased(self) -> None:
        key, token, fingerprint = self._key("web"), uuid4(), self._fingerprint()
        row = self._until_known(lambda: self._http_reserve_leased(key, token, fingerprint))
        if row is None:
            return
        held = Held(key, token, row["attempt"], row["created_at"], fingerprint)
        self._linger(longest=0.5)
        status = self._rng.choice([201, 201, 201, 404, 401, 503])
        if status in (401, 503):
            name = "release" if status == 401 else "defer"
            with self._transaction() as connection, self._recorded(name, commits=True, **held.given):
                self._http_complete(connection, key, token, self._answer(status))
                connection.execute("commit")
            return

        def store(connection: psycopg.Connection, answer: Answer) -> bool:
            return self._http_complete(connection, key, token, answer) == "stored"

        self._complete(held, "http leased", self._answer(status), store)

    def block(self) -> None:
        """An atomic block of the Python package, on its pool."""
        key, fingerprint, answer = self._key("again", "held", "kept"), self._fingerprint(), self._answer()
        completing = False
        number = self._recorder.begin(self._op, "block", key=key, fingerprint=fingerprint)
        try:
            with self._idem.atomic(SCOPE, key, fingerprint=fingerprint.encode(), policy=policy_of(key)) as op:
                if op.started:
                    self._work(op.connection, "block", key, answer, op.reservation, fingerprint)
                    completing = True
                    op.complete(answer.status, answer.body, headers=[(name, value) for name, value in answer.headers])
        except (psycopg.Error, IdempotencyError) as error:
            unknown = completing and is_lost(error)
            self._recorder.end(number, UNKNOWN if unknown else FAIL, error=code_of(error))
            raise
        self._recorder.end(number, OK, **shown(op.reservation))

    def leased_block(self) -> None:
        """A leased block of the Python package, on its pool."""
        key, fingerprint, answer = self._key("again", "held", "kept"), self._fingerprint(), self._answer()
        with ExitStack() as leaving:
            block = self._idem.leased(
                SCOPE,
                key,
                fingerprint=fingerprint.encode(),
                policy=policy_of(key),
                heartbeat=self._rng.random() < 0.5,
            )
            with self._recorded("reserve", commits=True, key=key, fingerprint=fingerprint, mode="leased") as seen:
                op = leaving.enter_context(block)
                seen.update(shown(op.reservation))
            if not op.started:
                return
            reservation = op.reservation
            held = Held(key, op.token, reservation.attempt, seen["created_at"], fingerprint)
            self._linger(longest=0.5)
            if self._rng.random() < 0.2:
                return  # deferred
            with self._recorded("commit", commits=True, **held.given), op.transaction() as connection:
                self._work(connection, "leased block", key, answer, reservation, fingerprint)
                op.complete(answer.status, answer.body, headers=[(name, value) for name, value in answer.headers])

    def sweep(self) -> None:
        family = self._rng.choice([name for name in FAMILIES if name != "stuck"])
        at_once = self._rng.random() < 0.3
        with self._transaction() as connection:
            with self._recorded("claim", commits=not at_once, key=f"{family}-") as seen:
                rows = connection.execute(
                    "select * from idem.claim_lapsed(max_rows => %s, lease => '300 ms', policy => %s, scope => %s)",
                    [self._rng.randint(1, 3), family, SCOPE],
                ).fetchall()
                seen["rows"] = [shown(row) for row in rows]
                if not at_once:
                    connection.execute("commit")
            if at_once:
                for row in rows[:1]:
                    answer = self._answer()
                    self._work(connection, "sweep", row.key, answer, row, None)
                    call(connection, "complete", scope=SCOPE, key=row.key, token=row.token, **json_of(answer))
                    self._commit(connection, row.key, token=row.token, attempt=row.attempt)
                return
        for row in rows:
            self._count += 1  # an answer names one attempt, and an attempt one key
            self._linger()
            self._finish(Held(row.key, row.token, row.attempt, row.created_at, None), "sweep")

    def resolve(self) -> None:
        key = self._key("again", "held", "kept", "web")
        action = self._rng.choice(["complete", "release", "retry"])
        answer = self._answer()
        with self._transaction() as connection:
            before = call(connection, "lookup", scope=SCOPE, key=key)
            force = self._rng.random() < 0.2
            if before.outcome != "lapsed" and not (force and before.outcome == "in_progress"):
                return
            given = {"key": key, "action": action, "attempt": before.attempt, "life": micros(before.created_at)}
            with self._recorded("resolve", commits=True, **given) as seen:
                seen["done"] = call(
                    connection,
                    "resolve",
                    scope=SCOPE,
                    key=key,
                    action=action,
                    reason=self._op,
                    attempt=before.attempt,
                    force=force,
                    **(json_of(answer) if action == "complete" else {}),
                )[0]
                if seen["done"] and action == "complete":
                    about = call(connection, "lookup", scope=SCOPE, key=key)
                    self._work(connection, "operator", key, answer, about, None)
                connection.execute("commit")

    def lookup(self) -> None:
        key = self._key(*FAMILIES)
        connection = self._connected()
        with self._recorded("lookup", key=key) as seen:
            seen.update(shown(call(connection, "lookup", scope=SCOPE, key=key)))

    def purge(self) -> None:
        connection = self._connected()
        with self._recorded("purge", key="*"):
            connection.execute("select idem.purge(%s)", [self._rng.choice([1, 10, 10000])])

    # parts of it

    def _reserve(
        self,
        connection: psycopg.Connection,
        key: str,
        token: UUID,
        fingerprint: str,
        *,
        mode: str,
        commits: bool = False,
    ) -> Any:
        [clock] = connection.execute("select clock_timestamp()").fetchone()  # type: ignore[misc]
        given = {"key": key, "fingerprint": fingerprint, "mode": mode, "token": str(token), "clock": micros(clock)}
        with self._recorded("reserve", commits=commits, **given) as seen:
            row = call(
                connection,
                "reserve",
                scope=SCOPE,
                key=key,
                fingerprint=fingerprint.encode(),
                mode=mode,
                state=Jsonb({"op": self._op}),
                token=token,
                policy=policy_of(key),
            )
            seen.update(shown(row))
            if commits:
                connection.execute("commit")
        return row

    def _reserve_leased(self, key: str, token: UUID, fingerprint: str) -> Any:
        with self._transaction(lazy=self._rng.random() < 0.3) as connection:
            return self._reserve(connection, key, token, fingerprint, mode="leased", commits=True)

    def _http_reserve(
        self, connection: psycopg.Connection, key: str, token: UUID, fingerprint: str, *, mode: str
    ) -> Any:
        given = {"key": key, "fingerprint": fingerprint, "mode": mode, "token": str(token)}
        with self._recorded("http_reserve", **given) as seen:
            row = call(
                connection,
                "http_reserve",
                scope=SCOPE,
                key_header=f'"{key}"' if self._rng.random() < 0.5 else key,
                method="POST",
                path="/pay",
                body=json.dumps({"for": fingerprint}).encode(),
                content_type="application/json",
                mode=mode,
                token=token,
                policy=policy_of(key),
            )
            seen.update(shown(row))
        return row

    def _http_reserve_leased(self, key: str, token: UUID, fingerprint: str) -> Any:
        """Return what is known of a reservation that has been committed, or None where there is none."""
        with self._transaction() as connection:
            row = self._http_reserve(connection, key, token, fingerprint, mode="leased")
            if row.status is not None:
                return None
            about = call(connection, "lookup", scope=SCOPE, key=key)
            given = {"key": key, "fingerprint": fingerprint, "mode": "leased", "token": str(token)}
            with self._recorded("reserve", commits=True, **given) as seen:
                connection.execute("commit")
                seen.update(shown(row) | {"outcome": "started", "created_at": micros(about.created_at)})
            return seen

    def _http_complete(self, connection: psycopg.Connection, key: str, token: UUID, answer: Answer) -> str:
        sent = json_of(answer._replace(headers=[*answer.headers, _DROPPED]))
        return str(call(connection, "http_complete", scope=SCOPE, key=key, token=token, **sent)[0])

    def _owner_call(self, held: "Held", name: str, **arguments: Any) -> None:
        with self._transaction() as connection, self._recorded(name, commits=True, **held.given, **arguments):
            call(connection, name, scope=SCOPE, key=held.key, token=held.token, **arguments)
            connection.execute("commit")

    def _finish(self, held: "Held", kind: str) -> None:
        how = self._rng.choice(["complete"] * 6 + ["release", "release", "defer", "walk away"])
        if how in ("release", "defer"):
            self._owner_call(held, how)
        elif how == "complete":

            def store(connection: psycopg.Connection, answer: Answer) -> bool:
                given = {"scope": SCOPE, "key": held.key, "token": held.token}
                return bool(call(connection, "complete", **given, **json_of(answer))[0])

            self._complete(held, kind, self._answer(), store)

    def _complete(self, held: "Held", kind: str, answer: Answer, store: Any) -> None:
        """Business write and completion in one transaction, repeated until it is known whether it has committed."""

        def attempt() -> bool:
            with (
                self._transaction(lazy=self._rng.random() < 0.3) as connection,
                self._recorded("commit", commits=True, **held.given) as seen,
            ):
                self._work(connection, kind, held.key, answer, held, held.fingerprint)
                seen["repeated"] = not store(connection, answer)
                if seen["repeated"]:
                    connection.execute("rollback")
                else:
                    connection.execute("commit")
            return True

        self._until_known(attempt)

    def _work(  # noqa: PLR0917 - the columns
        self, connection: psycopg.Connection, kind: str, key: str, answer: Answer, about: Any, fingerprint: str | None
    ) -> None:
        """Write the effect."""
        life = getattr(about, "created_at", None)
        connection.execute(
            "insert into public.effect"
            " (op, key, kind, life, attempt, token, fingerprint, status, headers, body, completed)"
            " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                *(self._op, key, kind, time_of(life), about.attempt, getattr(about, "token", None), fingerprint),
                *(answer.status, Jsonb(answer.headers), answer.body, getattr(about, "completed_at", None)),
            ],
        )

    def _commit(self, connection: psycopg.Connection, key: str, **given: Any) -> None:
        given = {name: str(value) if isinstance(value, UUID) else value for name, value in given.items()}
        with self._recorded("commit", commits=True, key=key, **given):
            connection.execute("commit")

    def _until_known(self, attempt: Any) -> Any:
        """Repeat what has lost its connection; None where it never came through."""
        for _ in range(_REPETITIONS):
            try:
                return attempt()
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not is_lost(error):
                    raise
                self._disconnect()
                time.sleep(self._rng.uniform(0.01, 0.3))
        return None

    # connections and the record

    @contextmanager
    def _transaction(self, isolation: str = "read committed", *, lazy: bool = False) -> Iterator[psycopg.Connection]:
        """A transaction, rolled back unless it has been committed. Lazy: its COMMIT need not wait for the disk."""
        connection = self._connected()
        connection.execute(f"begin isolation level {isolation}")
        if lazy:
            connection.execute("set local synchronous_commit = off")
        try:
            yield connection
        finally:
            self._rollback()

    @contextmanager
    def _recorded(self, name: str, *, commits: bool = False, **given: Any) -> Iterator[dict[str, Any]]:
        """Note a call and how it ends. If the connection is lost, only what was to commit is left unknown."""
        seen: dict[str, Any] = {}
        number = self._recorder.begin(self._op, name, **given)
        try:
            yield seen
        except (psycopg.Error, IdempotencyError) as error:
            ended = UNKNOWN if commits and is_lost(error) else FAIL
            self._recorder.end(number, ended, error=code_of(error))
            raise
        self._recorder.end(number, OK, **seen)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            # BEGIN and COMMIT are sent by hand, with the isolation level, so the driver must add none
            self._connection = psycopg.connect(
                self._dsn, autocommit=True, row_factory=namedtuple_row, connect_timeout=3
            )
        return self._connection

    def _rollback(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.execute("rollback")
        except psycopg.Error:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # chance

    @property
    def _op(self) -> str:
        return f"{self._name}.{self._count}"

    def _key(self, *families: str) -> str:
        family = FAMILIES[self._rng.choice(families)]
        return f"{family.name}-{_first_key(family) + self._rng.randrange(family.keys)}"

    def _fingerprint(self) -> str:
        return self._rng.choice(["one"] * 19 + ["other"])

    def _answer(self, status: int | None = None) -> Answer:
        lines = [["X-Line", str(self._rng.randrange(9))] for _ in range(self._rng.randrange(3))]
        body = f"{self._op} ".encode() + self._rng.randbytes(self._rng.randrange(20))
        return Answer(status or self._rng.randrange(200, 300), lines, body)

    def _linger(self, longest: float = 0.02) -> None:
        if self._rng.random() < 0.4:
            time.sleep(self._rng.uniform(0, longest))


class Held(NamedTuple):
    """A leased reservation that this client owns."""

    key: str
    token: UUID
    attempt: int
    created_at: Any
    fingerprint: str | None

    @property
    def given(self) -> dict[str, Any]:
        """What a call about it is recorded with."""
        return {"key": self.key, "token": str(self.token), "attempt": self.attempt, "life": micros(self.created_at)}


def policy_of(key: str) -> str:
    """Return the policy of a key, which is named like its family."""
    return key.partition("-")[0]


def _first_key(family: Family) -> int:
    return int(time.monotonic() * 10) if family.move else 0


def call(connection: psycopg.Connection, name: str, **arguments: Any) -> Any:
    """Call a function of pyidem and return its row."""
    named = ", ".join(f"{argument} => %({argument})s" for argument in arguments)
    cursor = connection.cursor(row_factory=namedtuple_row)
    return cursor.execute(f"select * from idem.{name}({named})", arguments).fetchone()


def json_of(answer: Answer) -> dict[str, Any]:
    """Return an answer as arguments."""
    return {"status": answer.status, "headers": Jsonb(answer.headers), "body": answer.body}


def shown(row: Any) -> dict[str, Any]:
    """Return what of a row goes into the record."""
    names = ("outcome", "key", "token", "attempt", "downstream_key", "recovery_point", "status", "headers", "body")
    times = ("created_at", "completed_at", "expires_at", "lease_until")
    values = {name: getattr(row, name, None) for name in names}
    plain = {
        name: value.hex() if isinstance(value, bytes) else str(value) if isinstance(value, UUID) else value
        for name, value in values.items()
        if value is not None
    }
    moments = {name: micros(getattr(row, name, None)) for name in times}
    return plain | {name: moment for name, moment in moments.items() if moment is not None}


def micros(moment: Any) -> int | None:
    """Return a time as microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1) if isinstance(moment, datetime) else moment


def time_of(moment: Any) -> datetime | None:
    """Return microseconds since 1970 as a time."""
    return _EPOCH + timedelta(microseconds=moment) if isinstance(moment, int) else moment


def is_lost(error: Exception) -> bool:
    """Tell whether it was the connection that failed, so that nobody knows what became of a COMMIT."""
    code = code_of(error)
    return code == "lost" or code[:2] in ("08", "57")


def code_of(error: Exception) -> str:
    """Return the SQLSTATE of an error, or `lost` where the connection was."""
    state = getattr(error, "sqlstate", None)
    if state is None and not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return type(error).__name__
    return state or "lost"


def main(dsn: str, directory: Path, name: str, seconds: float) -> None:
    """Be a client for so long; record and complaints go to files of its name."""
    complaints = os.open(directory / f"{name}.err", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(complaints, 2)
    logging.disable(logging.CRITICAL)  # the pool and the blocks report each connection that they lose
    Client(dsn, Recorder(directory / f"{name}.jsonl"), name, Random(name)).work(seconds)

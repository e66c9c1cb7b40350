"""What every call answers and leaves behind, as a program without a database: the specification that can be run.

It knows one scope. A `Store` holds what is committed, version by version; a `Session` has the calls, with the names and
arguments of SQL, and the transaction control around them. A call either returns its answer or raises `Refused` with
the SQLSTATE; one that would have to wait for another session's transaction is `Refused` with 55P03, as under a
lock_timeout.

Nothing here knows how the SQL does it, except where the answer depends on what PostgreSQL lets anybody know: which
version of a row a snapshot shows, and who holds a lock.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

READ_COMMITTED = "read committed"
REPEATABLE_READ = "repeatable read"
SERIALIZABLE = "serializable"

NOT_ACCEPTABLE = "IK001"
NOT_THE_OWNER = "IK002"
NO_SUCH_RESERVATION = "IK003"
DOES_NOT_FIT = "IK004"
NOT_COMPLETED = "IK005"
NO_SUCH_POLICY = "IK006"
OVER_A_LIMIT = "IK007"
BAD_ARGUMENT = "22023"
RETRY_THE_TRANSACTION = "40001"
WOULD_WAIT = "55P03"
RAISED_BY_HANDLER = "P0001"

MARK = UUID(int=2)
"""Stands for the token that there is not, of what `once` and `run` store finished: nobody owns it."""
NOBODY = UUID(int=1)
"""Stands for the token that `resolve` makes and tells nobody."""


class Refused(Exception):
    """The call raises this SQLSTATE."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


# Time


class Reading:
    """One look at the clock, during a call: between two times, until an answer shows which it was."""

    def __init__(self, earliest: datetime, latest: datetime) -> None:
        self.earliest = earliest
        self.latest = latest


@dataclass(frozen=True)
class Moment:
    """A time that is a known length away from a look at the clock."""

    reading: Reading
    distance: timedelta = timedelta()

    @property
    def earliest(self) -> datetime:
        return self.reading.earliest + self.distance

    @property
    def latest(self) -> datetime:
        return self.reading.latest + self.distance

    def __add__(self, length: timedelta) -> Moment:
        return Moment(self.reading, self.distance + length)

    def is_after(self, other: Moment) -> bool:
        """Whether this is later; lengths are chosen so that it is never a matter of the time that a call takes."""
        if self.earliest > other.latest:
            return True
        assert self.latest <= other.earliest, f"{self} and {other} are too close to tell"
        return False

    def agrees_with(self, shown: datetime) -> bool:
        """Whether this may be the time shown; from then on it is, and so for all that hangs on the same reading."""
        if not self.earliest <= shown <= self.latest:
            return False
        self.reading.earliest = self.reading.latest = shown - self.distance
        return True

    def apart(self) -> Moment:
        """The same, where the clock may have been read once more."""
        return Moment(Reading(self.reading.earliest, self.reading.latest), self.distance)

    def __repr__(self) -> str:
        return f"<{self.earliest:%d %H:%M:%S.%f} to {self.latest:%d %H:%M:%S.%f}>"


def later(one: Moment, other: Moment) -> Moment:
    return one if one.is_after(other) else other


@dataclass(frozen=True)
class Wait:
    """A whole number of seconds, between two."""

    least: int
    most: int


# What is stored and what is answered


@dataclass
class Policy:
    """Settings; a change counts from the next call on, for keys that are there as well."""

    name: str
    ttl: timedelta
    lease: timedelta
    on_lapse: str
    max_attempts: int | None
    retry_after: timedelta
    min_retention: timedelta
    tombstone: timedelta
    max_batch: int
    max_claims: int


@dataclass(frozen=True)
class Response:
    status: int | None = None
    headers: list[list[str]] | None = None
    body: bytes | None = None

    @property
    def well_formed(self) -> bool:
        return self.headers is None or all(
            len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in self.headers
        )


@dataclass(frozen=True)
class Attempt:
    """What a caller asks for."""

    token: UUID
    fingerprint: bytes | None = None
    leased: bool = False
    lease: timedelta | None = None
    fields: dict[str, str] | None = None
    state: Any = None

    def lease_under(self, policy: Policy) -> timedelta | None:
        return (self.lease or policy.lease) if self.leased else None


@dataclass(frozen=True)
class Row:
    policy: Policy
    fingerprint: bytes | None
    fields: dict[str, str] | None
    created_at: Moment
    expires_at: Moment
    owner: Transaction | None
    token: UUID
    attempt: int
    leased: bool
    lease: timedelta | None
    lease_until: Moment | None
    recovery_point: str | None
    state: Any
    released_at: Moment | None = None
    completed_at: Moment | None = None
    response: Response = Response()
    claims: int = 0
    claim_after: Moment | None = None
    reason: str | None = None
    checked_at_commit: bool = True
    expired_at: Moment | None = None
    purge_at: Moment | None = None

    @property
    def retained_until(self) -> Moment:
        if self.expired_at is not None:
            return self.expired_at
        if self.completed_at is None:
            return self.expires_at
        return later(self.expires_at, self.completed_at + self.policy.min_retention)

    def phase(self, now: Moment, reader: Transaction | None) -> str:
        """The state of the row; the transaction that owns an atomic row knows that it is at work."""
        if self.completed_at is not None:
            if self.expired_at is None and self.retained_until.is_after(now):
                return "completed"
            if (self.retained_until + self.policy.tombstone).is_after(now):
                return "expired"
            return "absent"
        if self.released_at is not None:
            return "released"
        if self.leased:
            assert self.lease_until is not None
            return "in_progress" if self.lease_until.is_after(now) else "lapsed"
        return "in_progress" if self.owner is reader else "lapsed"


@dataclass(frozen=True)
class Answer:
    """An idem.reservation, without what the caller can work out for itself: `downstream_key` comes with `started`."""

    outcome: str
    token: UUID | None = None
    attempt: int | None = None
    recovery_point: str | None = None
    state: Any = None
    response: Response = Response()
    mismatched: list[str] | None = None
    retry_after: Wait | None = None
    created_at: Moment | None = None
    lease_until: Moment | None = None
    completed_at: Moment | None = None
    expires_at: Moment | None = None
    from_run: bool = False


@dataclass(frozen=True)
class Claim:
    """A row as a resolver found it and as it has it."""

    found: Row
    taken: Row


class Store:
    """The committed versions of every key, and who is at work."""

    def __init__(self, policies: list[Policy], *, single_transaction: bool = False) -> None:
        self.policies = {policy.name: replace(policy) for policy in policies}
        self.single_transaction = single_transaction
        self.commits = 0
        self.versions: dict[str, list[tuple[int, Row | None]]] = {}
        self.transactions: list[Transaction] = []

    def committed(self, key: str, commits: int | None = None) -> Row | None:
        """What a snapshot taken after that many commits shows; the newest without."""
        shown = [row for at, row in self.versions.get(key, []) if commits is None or at <= commits]
        return shown[-1] if shown else None

    def changed_since(self, key: str, commits: int) -> bool:
        return any(at > commits for at, _ in self.versions.get(key, []))

    def open_transactions(self, *, but: Transaction | None = None) -> Iterator[Transaction]:
        return (transaction for transaction in self.transactions if transaction is not but)

    def key_holder(self, key: str, *, but: Transaction | None = None) -> Transaction | None:
        """Who has reserved, or tried to, what no committed row shows yet."""
        return next((t for t in self.open_transactions(but=but) if key in t.work.keys_held), None)

    def row_holder(self, key: str, *, but: Transaction | None = None) -> Transaction | None:
        """Who has changed or locked the committed row."""
        return next((t for t in self.open_transactions(but=but) if key in t.work.rows_held), None)

    # what happens beside the sessions, in transactions of its own

    def purge(self, now: Moment) -> set[str]:
        """Remove what has expired and is locked by nobody; returns what it did."""
        fates = {}
        for key in self.versions:
            row = self.committed(key)
            if row is None or self.row_holder(key) or (row.purge_at or row.expires_at).is_after(now):
                continue
            fates[key] = self._purged(row, now)
        self._commit(fates)
        return {"removed" if row is None else "tombstone" if row.expired_at else "put off" for row in fates.values()}

    @staticmethod
    def _purged(row: Row, now: Moment) -> Row | None:
        """What is left of a row that purge looks at, and when it looks again."""
        if row.completed_at is None:
            return replace(row, purge_at=later(row.expires_at, now + row.policy.min_retention))
        match row.phase(now, None):
            case "absent":
                return None
            case "completed":
                return replace(row, purge_at=row.retained_until)
        kept_until = row.retained_until + row.policy.tombstone
        if row.expired_at is not None:
            return replace(row, purge_at=kept_until)
        return replace(
            row,
            expired_at=row.retained_until,
            purge_at=kept_until,
            fields=None,
            recovery_point=None,
            state=None,
            response=Response(),
        )

    def forget(self, key: str | None) -> int:
        """Erase finished keys that nobody has locked; returns how many."""
        keys = self.versions if key is None else {key}
        rows = {each: self.committed(each) for each in keys}
        finished = [each for each, row in rows.items() if row and row.completed_at and not self.row_holder(each)]
        self._commit(dict.fromkeys(finished))
        return len(finished)

    def _commit(self, rows: Mapping[str, Row | None]) -> None:
        self.commits += 1
        for key, row in rows.items():
            self.versions.setdefault(key, []).append((self.commits, row))

    def policy(self, name: str) -> Policy:
        if name not in self.policies:
            raise Refused(NO_SUCH_POLICY)
        return self.policies[name]


@dataclass
class Work:
    """What a transaction has done so far and a rollback, to a savepoint too, undoes."""

    rows: dict[str, Row | None] = field(default_factory=dict)
    keys_held: set[str] = field(default_factory=set)
    rows_held: set[str] = field(default_factory=set)
    writes: int = 0

    def copy(self) -> Work:
        return Work(dict(self.rows), set(self.keys_held), set(self.rows_held), self.writes)


@dataclass(eq=False)
class Transaction:
    isolation: str = READ_COMMITTED
    unchecked: bool = False
    """The trigger that requires completion does not run, as in a replica."""
    snapshot: int | None = None
    work: Work = field(default_factory=Work)
    savepoints: list[Work] = field(default_factory=list)
    failed: bool = False
    has_written: bool = False
    """Anything but leased reservations, or in a savepoint that was rolled back."""
    may_have_written: bool = False
    """The contract leaves open whether a lock of a row, a write that met none, or a call that raised counts."""
    met_serializable: bool = False
    """PostgreSQL may find a conflict between serializable transactions that overlap, even where there is none."""

    @property
    def keeps_its_snapshot(self) -> bool:
        return self.isolation != READ_COMMITTED


# Sessions


class Session:
    """One connection: transaction control, then the calls."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.transaction: Transaction | None = None

    # transaction control

    def begin(self, isolation: str, *, unchecked: bool = False) -> None:
        assert self.transaction is None
        self.transaction = Transaction(isolation, unchecked)
        if isolation == SERIALIZABLE:
            for other in self.store.open_transactions():
                if other.isolation == SERIALIZABLE:
                    other.met_serializable = self.transaction.met_serializable = True
        self.store.transactions.append(self.transaction)

    def commit(self) -> bool:
        """Whether it has committed: a transaction that has failed rolls back. IK005 where atomic work is unfinished."""
        ending = self.transaction
        assert ending is not None
        self.rollback()
        if ending.failed:
            return False
        self._require_completion(ending)
        self.store.commits += 1
        for key, row in ending.work.rows.items():
            if row is not None or self.store.committed(key) is not None:
                self.store.versions.setdefault(key, []).append((self.store.commits, row))
        return True

    def rollback(self) -> None:
        assert self.transaction is not None
        self.store.transactions.remove(self.transaction)
        self.transaction = None

    def savepoint(self) -> None:
        assert self.transaction is not None
        self.transaction.savepoints.append(self.transaction.work.copy())

    def rollback_to(self, depth: int) -> None:
        """Undo what came after the savepoint; it stays."""
        transaction = self.transaction
        assert transaction is not None
        transaction.failed = False
        del transaction.savepoints[depth + 1 :]
        self._undo(transaction, transaction.savepoints[depth])

    def release_savepoint(self, depth: int) -> None:
        assert self.transaction is not None
        del self.transaction.savepoints[depth:]

    def set_constraints_immediate(self) -> None:
        with self._statement(takes_snapshot=False) as transaction:
            self._require_completion(transaction)

    def write(self) -> None:
        """A write of the caller's own, to a table of its own."""
        with self._statement() as transaction:
            transaction.has_written = True
            transaction.work.writes += 1

    def fail(self) -> None:
        """A call raises for a reason that the model does not decide: see `may_fail_to_serialize`, `may_be_refused`."""
        if self.transaction is not None:
            self._fail(self.transaction)

    @property
    def may_fail_to_serialize(self) -> bool:
        return self.transaction is not None and self.transaction.met_serializable

    @property
    def may_be_refused(self) -> bool:
        """A leased reserve may raise IK004."""
        return self.transaction is not None and self.transaction.may_have_written and not self.store.single_transaction

    @contextmanager
    def _statement(self, *, takes_snapshot: bool = True) -> Iterator[Transaction]:
        """What all calls have in common: the snapshot, and what becomes of the transaction if one raises."""
        alone = self.transaction is None
        if alone:
            self.begin(READ_COMMITTED)
        transaction = self.transaction
        assert transaction is not None
        assert not transaction.failed
        if takes_snapshot and transaction.snapshot is None and transaction.keeps_its_snapshot:
            transaction.snapshot = self.store.commits
        try:
            yield transaction
        except Refused:
            if alone:
                self.rollback()
            else:
                self._fail(transaction)
            raise
        if alone:
            self.commit()

    def take_snapshot(self) -> None:
        """A call begins that will end later."""
        with self._statement():
            pass

    def _fail(self, transaction: Transaction) -> None:
        """Locks and changes since the last savepoint go at once, not only with the rollback."""
        self._undo(transaction, transaction.savepoints[-1] if transaction.savepoints else Work())
        transaction.failed = True
        transaction.may_have_written = True

    @staticmethod
    def _undo(transaction: Transaction, before: Work) -> None:
        if transaction.work.writes != before.writes:
            transaction.has_written = True
        transaction.work = before.copy()

    @staticmethod
    def _require_completion(transaction: Transaction) -> None:
        for row in transaction.work.rows.values():
            if row and not row.leased and row.completed_at is None and row.checked_at_commit:
                raise Refused(NOT_COMPLETED)

    # what the transaction can see, lock and write

    def _seen(self, key: str) -> Row | None:
        assert self.transaction is not None
        if key in self.transaction.work.rows:
            return self.transaction.work.rows[key]
        return self.store.committed(key, self.transaction.snapshot)

    def _hidden(self, key: str) -> bool:
        """Whether a row has been committed that the snapshot does not show."""
        assert self.transaction is not None
        return (
            self.transaction.snapshot is not None
            and key not in self.transaction.work.rows
            and self.store.committed(key) is not None
        )

    def _hold_key(self, key: str) -> bool:
        """Try the lock of a key that has no row; nobody waits for it."""
        assert self.transaction is not None
        if self.store.key_holder(key, but=self.transaction):
            return False
        self.transaction.work.keys_held.add(key)
        return True

    def _hold_row(self, key: str) -> bool:
        """Lock the row that was seen, unless another has it. One changed since the snapshot cannot be locked."""
        transaction = self.transaction
        assert transaction is not None
        if key in transaction.work.rows:
            return True
        if transaction.snapshot is not None and self.store.changed_since(key, transaction.snapshot):
            raise Refused(RETRY_THE_TRANSACTION)
        if self.store.row_holder(key, but=transaction):
            transaction.may_have_written = True
            return False
        transaction.work.rows_held.add(key)
        return True

    def _hold_or_wait(self, key: str) -> None:
        if not self._hold_row(key):
            raise Refused(WOULD_WAIT)
        assert self.transaction is not None
        self.transaction.may_have_written = True

    def _write(self, key: str, row: Row | None, *, leased_reservation: bool = False) -> None:
        assert self.transaction is not None
        self.transaction.work.rows[key] = row
        self.transaction.work.rows_held.add(key)
        self.transaction.work.writes += 1
        if not leased_reservation:
            self.transaction.has_written = True

    # reserve

    def reserve(
        self,
        now: Moment,
        key: str,
        *,
        fingerprint: bytes | None,
        mode: str,
        lease: timedelta | None,
        fields: dict[str, str] | None,
        state: Any,
        token: UUID,
        policy: str,
    ) -> Answer:
        with self._statement():
            leased = mode == "leased"
            if lease is not None and not leased:
                raise Refused(BAD_ARGUMENT)
            return self._reserve(now, key, Attempt(token, fingerprint, leased, lease, fields, state), policy)

    def _reserve(self, now: Moment, key: str, attempt: Attempt, policy: str) -> Answer:
        transaction = self.transaction
        assert transaction is not None
        if attempt.leased and transaction.has_written and not self.store.single_transaction:
            raise Refused(DOES_NOT_FIT)
        settings = self.store.policy(policy)

        row = self._seen(key)
        if row is None:
            if not self._hold_key(key):
                return self._at_work(settings)
            if self._hidden(key):
                raise Refused(RETRY_THE_TRANSACTION)
            return self._start(key, self._first(now, settings, attempt))
        return self._reserve_existing(now, key, row, attempt, settings)

    def _reserve_existing(self, now: Moment, key: str, row: Row, attempt: Attempt, policy: Policy) -> Answer:
        transaction = self.transaction
        assert transaction is not None
        verdict = self._judge(row, now, attempt)
        if verdict in ("renew", "take over", "replace"):
            if not self._hold_row(key):
                return self._at_work(row.policy)
        elif verdict == "unresolved" and transaction.keeps_its_snapshot:
            # an old snapshot may show a lapse that a heartbeat has ended: the lock tells
            self._hold_row(key)
            transaction.may_have_written = True

        if verdict == "renew":
            if row.leased != attempt.leased:
                raise Refused(DOES_NOT_FIT)
            return self._start(key, self._renewed(row, now, attempt.lease)) if row.leased else self._started(row)
        if verdict == "take over":
            return self._start(key, self._next(row, now, attempt))
        if verdict == "replace":
            return self._start(key, self._first(now, policy, attempt))
        return self._answer(verdict, row, now, attempt.fields)

    def _judge(self, row: Row, now: Moment, attempt: Attempt) -> str:
        """What a row means to an attempt. The fingerprint comes first in every state that can be seen."""
        phase = row.phase(now, self.transaction)
        if phase == "absent":
            return "replace"
        if row.fingerprint != attempt.fingerprint:
            return "mismatch"
        if row.token == attempt.token and phase in ("in_progress", "lapsed") and (row.leased or phase != "lapsed"):
            return "renew"
        attempts_left = row.policy.max_attempts is None or row.attempt < row.policy.max_attempts
        may_retry = row.leased and row.policy.on_lapse == "retry" and attempts_left
        return {
            "completed": "replay",
            "expired": "expired",
            "released": "take over",
            "in_progress": "in_progress",
            "lapsed": "take over" if may_retry else "unresolved",
        }[phase]

    def _first(self, now: Moment, policy: Policy, attempt: Attempt) -> Row:
        assert self.transaction is not None
        lease = attempt.lease_under(policy)
        return Row(
            policy=policy,
            fingerprint=attempt.fingerprint,
            fields=attempt.fields,
            created_at=now,
            expires_at=now + policy.ttl,
            owner=self.transaction,
            token=attempt.token,
            attempt=1,
            leased=attempt.leased,
            lease=lease,
            lease_until=now + lease if lease else None,
            recovery_point=None,
            state=attempt.state,
            checked_at_commit=not self.transaction.unchecked,
        )

    def _next(self, row: Row, now: Moment, attempt: Attempt) -> Row:
        """The same life under a new owner: what the last one left of its state stays."""
        assert self.transaction is not None
        lease = attempt.lease_under(row.policy)
        return replace(
            row,
            owner=self.transaction,
            token=attempt.token,
            attempt=row.attempt + 1,
            leased=attempt.leased,
            lease=lease,
            lease_until=now + lease if lease else None,
            state=row.state if row.state is not None else attempt.state,
            released_at=None,
            claims=0,
            claim_after=None,
            reason=None,
            checked_at_commit=not self.transaction.unchecked,
        )

    @staticmethod
    def _renewed(row: Row, now: Moment, lease: timedelta | None) -> Row:
        length = lease or row.lease
        assert length is not None
        return replace(row, lease_until=now + length)

    def _start(self, key: str, row: Row) -> Answer:
        self._write(key, row, leased_reservation=row.leased)
        return self._started(row)

    @staticmethod
    def _started(row: Row) -> Answer:
        return Answer(
            "started",
            token=row.token,
            attempt=row.attempt,
            recovery_point=row.recovery_point,
            state=row.state,
            created_at=row.created_at,
            lease_until=row.lease_until,
            expires_at=row.expires_at,
        )

    @staticmethod
    def _at_work(policy: Policy) -> Answer:
        """Another has what cannot be read yet."""
        return Answer("in_progress", retry_after=retry_after(policy, None, None))

    @staticmethod
    def _answer(outcome: str, row: Row, now: Moment, fields: dict[str, str] | None) -> Answer:
        about = Answer(outcome, attempt=row.attempt, created_at=row.created_at)
        if outcome == "mismatch":
            return replace(about, mismatched=mismatched(row.fields, fields))
        about = replace(about, expires_at=row.retained_until)
        if outcome in ("in_progress", "unresolved"):
            wait = retry_after(row.policy, row.lease_until, now)
            return replace(about, lease_until=row.lease_until, retry_after=wait)
        response = row.response if outcome == "replay" else Response()
        return replace(about, completed_at=row.completed_at, response=response)

    # the owner's calls

    def complete(self, now: Moment, key: str, token: UUID, response: Response) -> bool:
        with self._statement() as transaction:
            if not response.well_formed:
                raise Refused(BAD_ARGUMENT)
            row = self._seen(key)
            if row is None or row.token != token:
                raise self._not_owned(key, row)
            if row.completed_at is not None and row.response == response:
                transaction.may_have_written = True
                return False
            if row.completed_at is not None or row.released_at is not None:
                raise Refused(NOT_THE_OWNER)
            if row.leased and row.owner is transaction and not self.store.single_transaction:
                raise Refused(DOES_NOT_FIT)
            self._hold_or_wait(key)
            self._write(key, replace(row, completed_at=now, response=response, claim_after=None, reason=None))
            return True

    def release(self, now: Moment, key: str, token: UUID) -> bool:
        with self._statement():
            row = self._seen(key)
            if row is not None and row.token == token:
                self._hold_or_wait(key)
                if row.released_at is not None:
                    return False
            row = self._own(key, token)
            untouched = row.attempt == 1 and row.recovery_point is None
            self._write(key, None if untouched else replace(row, released_at=now))
            return True

    def defer(self, now: Moment, key: str, token: UUID, retry_in: timedelta | None, reason: str | None) -> bool:
        with self._statement():
            row = self._own(key, token)
            assert row.lease_until is not None
            over = now if row.lease_until.is_after(now) else row.lease_until
            wait = retry_in or back_off(row.claims)
            claim_after = now + wait if wait else None
            self._write(key, replace(row, lease_until=over, claim_after=claim_after, reason=reason))
            return True

    def extend(self, now: Moment, key: str, token: UUID, lease: timedelta | None) -> Moment:
        with self._statement():
            row = self._renewed(self._own(key, token), now, lease)
            self._write(key, row)
            assert row.lease_until is not None
            return row.lease_until

    def checkpoint(self, now: Moment, key: str, token: UUID, recovery_point: str, state: Any) -> bool:
        with self._statement():
            if not recovery_point:
                raise Refused(BAD_ARGUMENT)
            row = self._own(key, token)
            if row.recovery_point == recovery_point:
                if state is None or state == row.state:
                    return False
                raise Refused(NOT_THE_OWNER)
            kept = row.state if state is None else state
            self._write(key, replace(self._renewed(row, now, None), recovery_point=recovery_point, state=kept))
            return True

    def _own(self, key: str, token: UUID) -> Row:
        """The leased, unfinished row of the token, locked."""
        row = self._seen(key)
        if row is None or row.token != token or row.released_at is not None:
            raise self._not_owned(key, row)
        if not row.leased:
            raise Refused(DOES_NOT_FIT)
        if row.completed_at is not None:
            raise Refused(NOT_THE_OWNER)
        self._hold_or_wait(key)
        return row

    def _not_owned(self, key: str, row: Row | None) -> Refused:
        if row is not None:
            return Refused(NOT_THE_OWNER)
        if self._hidden(key) and self._hold_key(key):
            return Refused(RETRY_THE_TRANSACTION)
        return Refused(NO_SUCH_RESERVATION)

    # resolvers and operators

    def claim_lapsed(
        self,
        now: Moment,
        *,
        max_rows: int,
        lease: timedelta | None,
        policy: str | None,
        key: str | None,
        made: dict[str, UUID],
    ) -> dict[str, Claim]:
        """What is claimed of the keys asked for; the tokens are made by the server."""
        with self._statement() as transaction:
            if max_rows < 1:
                raise Refused(BAD_ARGUMENT)
            if policy is not None:
                self.store.policy(policy)
            keys = {*self.store.versions, *transaction.work.rows} if key is None else {key}
            claimed = {}
            for each in sorted(keys):
                row = self._seen(each)
                if (
                    row is None
                    or (policy is not None and row.policy.name != policy)
                    or row.phase(now, transaction) != "lapsed"
                    or row.claims >= row.policy.max_claims
                    or (row.claim_after is not None and row.claim_after.is_after(now))
                    or not self._hold_row(each)
                ):
                    continue
                length = lease or row.policy.lease
                taken = replace(
                    row,
                    owner=None,
                    token=made.get(each, NOBODY),
                    leased=True,
                    lease=length,
                    lease_until=now.apart() + length,
                    claims=row.claims + 1,
                    claim_after=None,
                    checked_at_commit=True,
                )
                self._write(each, taken)
                claimed[each] = Claim(row, taken)
            return claimed

    def resolve(
        self,
        now: Moment,
        key: str,
        *,
        action: str,
        reason: str | None,
        attempt: int | None,
        force: bool,
        response: Response,
    ) -> bool:
        with self._statement():
            answers = response != Response()
            if action not in ("complete", "release", "retry") or not reason:
                raise Refused(BAD_ARGUMENT)
            if (answers and action != "complete") or not response.well_formed:
                raise Refused(BAD_ARGUMENT)
            row = self._seen(key)
            if row is None:
                raise self._not_owned(key, row)
            self._hold_or_wait(key)
            phase = row.phase(now, self.transaction)
            if phase == "absent":
                raise Refused(NO_SUCH_RESERVATION)
            if attempt is not None and attempt != row.attempt:
                return False
            if phase in ("completed", "expired") or (phase != "lapsed" and not (row.leased and force)):
                raise Refused(DOES_NOT_FIT)
            if action == "complete":
                done = replace(
                    row, released_at=None, completed_at=now, response=response, claim_after=None, reason=None
                )
            elif action == "release" and row.attempt == 1 and row.recovery_point is None:
                self._write(key, None)
                return True
            else:
                done = replace(row, leased=True, released_at=now)
            self._write(key, replace(done, token=NOBODY))
            return True

    # lookup

    def lookup(self, now: Moment, key: str) -> Answer:
        with self._statement() as transaction:
            row = self._seen(key)
            outcome = row.phase(now, transaction) if row else "absent"
            if row is None or outcome == "absent":
                return Answer("absent")
            about = Answer(
                outcome,
                attempt=row.attempt,
                created_at=row.created_at,
                completed_at=row.completed_at,
                expires_at=row.retained_until,
            )
            if outcome == "completed":
                return replace(about, response=row.response)
            if outcome in ("in_progress", "lapsed"):
                return replace(about, lease_until=row.lease_until)
            return about

    # marks

    def once(self, now: Moment, key: str, policy: str) -> str:
        with self._statement():
            settings = self.store.policy(policy)
            # most messages are new: once begins with the lock, and keeps it even where there is a row
            self._hold_key(key)
            return self._once(now, key, settings)

    def once_many(self, now: Moment, keys: list[str], policy: str) -> list[tuple[int, str, str]]:
        with self._statement() as transaction:
            transaction.may_have_written = True
            settings = self.store.policy(policy)
            if len(keys) > settings.max_batch:
                raise Refused(OVER_A_LIMIT)
            outcomes = {key: self._once(now.apart(), key, settings) for key in sorted(set(keys))}
            answer = []
            for ordinal, key in enumerate(keys, 1):
                again = outcomes[key] == "first" and key in keys[: ordinal - 1]
                answer.append((ordinal, key, "duplicate" if again else outcomes[key]))
            return answer

    def _once(self, now: Moment, key: str, policy: Policy) -> str:
        row = self._seen(key)
        if row is None:
            if not self._hold_key(key):
                return "in_progress"
            if self._hidden(key):
                raise Refused(RETRY_THE_TRANSACTION)
            self._write(key, self._mark(now, policy))
            return "first"
        phase = row.phase(now, self.transaction)
        if phase in ("completed", "expired"):
            return "duplicate"
        if phase != "absent" or not self._hold_row(key):
            return "in_progress"
        self._write(key, self._mark(now, policy))
        return "first"

    def _mark(self, now: Moment, policy: Policy) -> Row:
        return replace(self._first(now, policy, Attempt(MARK)), completed_at=now)

    def once_undo(self, keys: list[str]) -> int:
        with self._statement() as transaction:
            transaction.may_have_written = True
            own = [
                key
                for key in set(keys)
                if (row := self._seen(key)) is not None and row.token == MARK and row.owner is transaction
            ]
            for key in own:
                self._write(key, None)
            return len(own)

    # run

    def run(
        self,
        now: Moment,
        key: str,
        *,
        fingerprint: bytes | None,
        handler: str,
        response: Response,
        policy: str,
        token: UUID,
    ) -> Answer:
        """The handler returns the response; `raising` raises instead, and `greedy` reserves its own key before."""
        with self._statement():
            # run begins with the lock, as once does, and keeps it even where there is a row
            held = self._hold_key(key)
            row = self._seen(key)
            if row is None and held:
                if self._hidden(key):
                    raise Refused(RETRY_THE_TRANSACTION)
                if handler == "raising":
                    raise Refused(RAISED_BY_HANDLER)
                settings = self.store.policy(policy)
                row = replace(self._first(now, settings, Attempt(MARK, fingerprint)), owner=None)
                if handler == "greedy":
                    raise Refused(NOT_THE_OWNER if response.well_formed else BAD_ARGUMENT)
            else:
                answer = self._reserve(now, key, Attempt(token, fingerprint), policy)
                if answer.outcome != "started":
                    return answer
                row = self._seen(key)
                assert row is not None
            if handler == "raising":
                raise Refused(RAISED_BY_HANDLER)
            if not response.well_formed:
                raise Refused(BAD_ARGUMENT)
            self._write(key, replace(row, completed_at=now.apart(), response=response, claim_after=None, reason=None))
            return self._ran(key)

    def _ran(self, key: str) -> Answer:
        row = self._seen(key)
        assert row is not None
        return Answer(
            "started",
            token=None if row.token == MARK else row.token,
            attempt=row.attempt,
            response=row.response,
            created_at=row.created_at,
            completed_at=row.completed_at,
            expires_at=row.retained_until,
            from_run=True,
        )


def back_off(claims: int) -> timedelta | None:
    """What a resolver that names no delay leaves to the next one."""
    return min(timedelta(seconds=10) * 2 ** (claims - 1), timedelta(hours=1)) if claims else None


def retry_after(policy: Policy, lease_until: Moment | None, now: Moment | None) -> Wait:
    """The least of the policy's wait and what is left of the lease, in whole seconds, at least one."""

    def wait(left: timedelta | None) -> int:
        least = min(policy.retry_after, left) if left else policy.retry_after
        return max(1, math.ceil(least.total_seconds()))

    if lease_until is None or now is None or not lease_until.is_after(now):
        return Wait(wait(None), wait(None))
    return Wait(wait(lease_until.earliest - now.latest), wait(lease_until.latest - now.earliest))


def mismatched(stored: dict[str, str] | None, given: dict[str, str] | None) -> list[str] | None:
    if stored is None or given is None:
        return None
    return sorted(name for name in stored | given if stored.get(name) != given.get(name))

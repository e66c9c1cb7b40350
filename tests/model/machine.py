"""A hypothesis state machine that drives real sessions and the model side by side, and compares every answer.

A step is one call or one piece of transaction control in one of three sessions, so the order of events is certain and
the model can say exactly what must come out. Where several answers are right the reason is beside the rule.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID, uuid5

import psycopg
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

from tests.model import model
from tests.model.model import MARK, NOBODY, READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE
from tests.support.calls import set_policy
from tests.support.database import Database
from tests.support.waiting import Background, wait_until

SESSIONS = 3
KEYS = ("a", "A", "b")

# The clock is moved by whole hours, and all lengths end between them: what a call itself takes decides nothing.
HALF = timedelta(minutes=30)
HOUR = timedelta(hours=1)
ADVANCES = (HOUR, HOUR, 3 * HOUR, 6 * HOUR, 24 * HOUR)
LEASES = (None, HALF, 2 * HOUR + HALF)

POLICIES = [
    model.Policy(
        "hold", 10 * HOUR + HALF, 2 * HOUR + HALF, "hold", None, timedelta(seconds=45.2), HALF, 0 * HOUR, 3, 9
    ),
    model.Policy("again", 2 * HOUR + HALF, HALF, "retry", None, timedelta(seconds=1), 6 * HOUR + HALF, 4 * HOUR, 3, 2),
    model.Policy("twice", 10 * HOUR + HALF, HALF, "retry", 2, 3 * HOUR, HALF, 12 * HOUR, 2, 1),
]
NO_POLICY = "nowhere"
FINGERPRINTS: dict[bytes | None, dict[str, str] | None] = {
    None: None,
    b"1": {"/amount": "one", "/to": "x"},
    b"2": {"/amount": "two", "/memo": "y"},
}
STATES = (None, {"charge": 7}, [1])
RESPONSES = (
    model.Response(),
    model.Response(201, [["location", "/1"], ["x", ""]], b"\x00done"),
    model.Response(201, [["x", ""], ["location", "/1"]], b"\x00done"),
    model.Response(500, [], b""),
    model.Response(200, [["lonely"]], None),
)
MALFORMED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("IK001", "reserve", {"key": ""}),
    ("IK001", "reserve", {"key": None}),
    ("IK001", "reserve", {"key": '"quoted"'}),
    ("IK001", "reserve", {"key": "k", "scope": None}),
    ("IK001", "complete", {"key": None, "token": UUID(int=1)}),
    ("IK001", "extend", {"key": "", "token": UUID(int=1)}),
    ("IK001", "lookup", {"key": " "}),
    ("IK001", "once", {"key": "\x07"}),
    ("IK001", "once_many", {"keys": ["k", None]}),
    ("IK001", "once_undo", {"keys": [], "scope": ""}),
    ("IK007", "reserve", {"key": "k", "fields": {str(n): "" for n in range(1001)}}),
    ("22023", "reserve", {"key": "k", "mode": "both"}),
    ("22023", "reserve", {"key": "k", "mode": "leased", "lease": timedelta()}),
    ("22023", "extend", {"key": "k", "token": UUID(int=1), "lease": -HOUR}),
    ("22023", "defer", {"key": "k", "token": UUID(int=1), "retry_in": timedelta(days=99999)}),
    ("IK001", "claim_lapsed", {"key": " "}),
    ("22023", "claim_lapsed", {"max_rows": 0}),
    ("22023", "claim_lapsed", {"lease": -HOUR}),
    ("IK001", "resolve", {"key": None, "action": "retry", "reason": "asked"}),
    ("22023", "resolve", {"key": "k", "action": "undo", "reason": "asked"}),
    ("22023", "resolve", {"key": "k", "action": "retry", "reason": " "}),
    ("22023", "resolve", {"key": "k", "action": "retry", "reason": "asked", "status": 201}),
    ("22023", "run", {"key": "k", "fingerprint": None, "handler": "pg_backend_pid()", "args": None}),
)
HANDLERS = ("plain", "plain", "raising", "greedy")
PATIENCE = "30ms"

SETUP = """
create table public.effect (
    scope text, key text, life timestamptz, mark boolean, by xid8 not null default pg_current_xact_id()
);

create function public.plain(args jsonb) returns idem.response language sql as $$
    select (args ->> 'status')::int, nullif(args -> 'headers', 'null'), decode(args ->> 'body', 'hex')
$$;

create function public.raising(args jsonb) returns idem.response language plpgsql as $$
begin
    raise exception 'the handler gives up';
end
$$;

create function public.greedy(args jsonb) returns idem.response language plpgsql as $$
begin
    perform idem.reserve(args ->> 'scope', args ->> 'key');
    return public.plain(args);
end
$$;
"""


class Client:
    """A session of the server and its counterpart in the model."""

    def __init__(self, name: str, connection: psycopg.Connection, counterpart: model.Session) -> None:
        self.name = name
        self.connection = connection
        self.model = counterpart

    @property
    def transaction(self) -> model.Transaction | None:
        return self.model.transaction

    @property
    def in_transaction(self) -> model.Transaction:
        assert self.model.transaction is not None
        return self.model.transaction

    @property
    def usable(self) -> bool:
        return self.transaction is None or not self.transaction.failed

    def sees(self, key: str) -> model.Row | None:
        if self.transaction is None:
            return self.model.store.committed(key)
        return self.transaction.work.rows.get(key) or self.model.store.committed(key, self.transaction.snapshot)

    def sees_unfinished(self, key: str) -> bool:
        row = self.sees(key)
        return row is not None and row.completed_at is None

    @property
    def has_marked(self) -> bool:
        return any(row is not None and row.token == MARK for row in self.in_transaction.work.rows.values())

    def execute(self, statement: str, arguments: Any = None) -> list[Any]:
        cursor = self.connection.cursor(row_factory=namedtuple_row)
        cursor.execute(statement, arguments)
        return cursor.fetchall() if cursor.description else []


class Stage:
    """The database, with connections that serve one run of the machine after the other; each has a scope of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.observer = database.connect(autocommit=True)
        self.connections = [database.connect(autocommit=True) for _ in range(SESSIONS)]
        self.runs = 0
        self.steps = 0
        self.reached: Counter[str] = Counter()
        self.observer.execute(SETUP)
        self.policies_changed = True

    def set_policies(self) -> None:
        """Each run begins with the same ones."""
        if self.policies_changed:
            for policy in POLICIES:
                columns = {name: value for name, value in vars(policy).items() if name != "name"}
                set_policy(self.observer, policy.name, **columns)
        self.policies_changed = False

    def is_blocked(self, client: Client) -> bool:
        pid = client.connection.info.backend_pid
        found = self.observer.execute("select cardinality(pg_blocking_pids(%s)) > 0", [pid]).fetchone()
        assert found is not None
        return bool(found[0])


numbers = st.integers(0, 9)
rarely = st.integers(0, 9).map(lambda n: n == 9)
keys = st.sampled_from(["a", "a", "a", "A", "A", "b"])
fingerprints = st.sampled_from([b"1"] * 8 + [None, b"2"])
policies = st.sampled_from(["again", "twice", "hold"] * 6 + [NO_POLICY])
responses = st.sampled_from([RESPONSES[1]] * 5 + list(RESPONSES))


@dataclass(frozen=True)
class Step:
    """What may come next: how often, when, and with which arguments."""

    act: Callable[..., None]
    weight: int
    when: Callable[[Any], Any]
    arguments: st.SearchStrategy[dict[str, Any]]


STEPS: dict[str, Step] = {}


def step(
    weight: int, *, when: Callable[[Any], Any] = lambda _: True, **arguments: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a method of the machine one of its steps."""

    def register(act: Callable[..., None]) -> Callable[..., None]:
        STEPS[act.__name__] = Step(act, weight, when, st.fixed_dictionaries(arguments))
        return act

    return register


class Machine(RuleBasedStateMachine):
    """Steps draw plain numbers and turn them into what fits the situation, so that few are wasted.

    There is one rule, which draws the step by its weight. Rules would be left out at random, half of them in most runs,
    and a history worth checking needs nearly all of them.
    """

    stage: ClassVar[Stage]

    def __init__(self) -> None:
        super().__init__()
        self.stage.runs += 1
        self.scope = f"run {self.stage.runs}"
        self.offset = timedelta()
        self.tokens: list[UUID] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.downstream_keys: dict[str, UUID] = {}

    @initialize(single_transaction=st.sampled_from([False, False, False, True]))
    def start(self, single_transaction: bool) -> None:
        self.stage.set_policies()
        self.store = model.Store(POLICIES, single_transaction=single_transaction)
        self.clients = [
            Client(f"S{number}", connection, model.Session(self.store))
            for number, connection in enumerate(self.stage.connections, 1)
        ]
        for client in self.clients:
            client.execute(f"set idem.single_transaction = {single_transaction}")

    def teardown(self) -> None:
        for connection in self.stage.connections:
            connection.execute("rollback")

    @rule(data=st.data())
    def next(self, data: st.DataObject) -> None:
        possible = [name for name, step in STEPS.items() for _ in range(step.weight) if step.when(self)]
        name = data.draw(st.sampled_from(possible), "step")
        arguments = data.draw(STEPS[name].arguments, "with")
        STEPS[name].act(self, **arguments)

    # the first step is the cheapest: hypothesis begins each search with a run of nothing else
    @step(3, by=st.sampled_from(ADVANCES))
    def advance_the_clock(self, by: timedelta) -> None:
        self.offset += by
        self.count("advance", "done")

    # transaction control

    @step(
        4,
        when=lambda self: self.idle,
        n=numbers,
        isolation=st.sampled_from([READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE, READ_COMMITTED, REPEATABLE_READ]),
        unchecked=rarely,
    )
    def begin(self, n: int, isolation: str, unchecked: bool) -> None:
        """Unchecked: the trigger that finds unfinished atomic work does not run, as where a replica applies changes."""
        client = pick(self.idle, n)
        client.execute(f"begin isolation level {isolation}")
        client.execute(f"set local session_replication_role = {'replica' if unchecked else 'origin'}")
        client.model.begin(isolation, unchecked=unchecked)
        self.count("begin", isolation)

    @step(3, when=lambda self: self.busy, n=numbers, how=st.sampled_from(["commit", "commit", "rollback"]))
    def end(self, n: int, how: str) -> None:
        self.end_transaction(pick(self.failed or self.busy, n), how)

    @step(1, when=lambda self: self.at_work, n=numbers)
    def savepoint(self, n: int) -> None:
        client = pick(self.at_work, n)
        client.execute(f"savepoint s{len(client.in_transaction.savepoints)}")
        client.model.savepoint()
        self.count("savepoint", "done")

    @step(1, when=lambda self: self.with_savepoints, n=numbers, depth=numbers, release=rarely)
    def leave_savepoint(self, n: int, depth: int, release: bool) -> None:
        client = pick(self.with_savepoints, n)
        count = len(client.in_transaction.savepoints)
        depth = count - 1 - depth % count
        if release and client.usable:
            client.execute(f"release s{depth}")
            client.model.release_savepoint(depth)
            self.count("release savepoint", "done")
        else:
            client.execute(f"rollback to s{depth}")
            client.model.rollback_to(depth)
            self.count("rollback to savepoint", "done")

    @step(
        1, when=lambda self: self.at_work, n=numbers, what=st.sampled_from(["immediate", "deferred", "write", "write"])
    )
    def set_constraints_or_write(self, n: int, what: str) -> None:
        client = pick(self.at_work, n)
        if what == "write":
            self.business(client, "insert into public.effect (scope) values ('a write of the caller''s own')", [])
            self.count("write", "done")
            return
        may_fail = client.model.may_fail_to_serialize
        actual = outcome_of(lambda: client.execute(f"set constraints all {what}"))
        self.count(f"set constraints {what}", "done" if actual == [] else actual)
        if actual == "40001" and may_fail:
            client.model.fail()
        elif what == "immediate":
            expected = outcome_of(client.model.set_constraints_immediate) or []
            assert actual == expected, f"set constraints: {actual}, but expected {expected}"
        else:
            assert actual == []

    # calls

    @step(
        7,
        when=lambda self: self.usable,
        n=numbers,
        key=keys,
        fingerprint=fingerprints,
        with_fields=st.booleans(),
        mode=st.sampled_from(["atomic", "leased", "leased"]),
        lease=st.sampled_from(LEASES),
        state=st.sampled_from(STATES),
        token=st.sampled_from(["fresh", "fresh", "fresh", "owner", "owner", "stale", None]),
        policy=policies,
        which=numbers,
        misplaced_lease=rarely,
    )
    def reserve(
        self,
        *,
        n: int,
        key: str,
        fingerprint: bytes | None,
        with_fields: bool,
        mode: str,
        lease: timedelta | None,
        state: Any,
        token: str | None,
        policy: str,
        which: int,
        misplaced_lease: bool,
    ) -> None:
        # without a transaction an atomic reservation is never completed
        sessions = self.usable if mode == "leased" or misplaced_lease else self.at_work or self.usable
        client = pick(sessions, n)
        self.perform(
            client,
            "reserve",
            key=key,
            fingerprint=fingerprint,
            fields=FINGERPRINTS[fingerprint] if with_fields else None,
            mode=mode,
            lease=lease if mode == "leased" or misplaced_lease else None,
            state=state,
            token=self.token(client, key, token, which) if token else None,
            policy=policy,
        )

    @step(
        7,
        when=lambda self: self.usable,
        n=numbers,
        astray=rarely,
        key=keys,
        token=st.sampled_from(["owner", "owner", "owner", "owner", "owner", "owner", "stale", "stale", "fresh", "nil"]),
        which=numbers,
        name=st.sampled_from(["complete"] * 3 + ["release"] * 2 + ["defer", "extend"] + ["checkpoint"] * 2),
        response=responses,
        retry_in=st.sampled_from([None, HOUR]),
        reason=st.sampled_from([None, "timed out", "gave up"]),
        lease=st.sampled_from(LEASES),
        recovery_point=st.sampled_from(["charged", "charged", "charged", "sent", "sent", ""]),
        state=st.sampled_from(STATES),
    )
    def owner_call(
        self, *, n: int, astray: bool, key: str, token: str, which: int, name: str, **arguments: Any
    ) -> None:
        """Mostly about a key that is there; complete mostly from a transaction."""
        sessions = (self.at_work if name == "complete" else self.usable) or self.usable
        aims = [(client, key) for client in sessions for key in KEYS if client.sees_unfinished(key)]
        client, key = pick(aims, n) if aims and not astray else (pick(self.usable, n), key)
        takes = {
            "complete": ["response"],
            "release": [],
            "defer": ["retry_in", "reason"],
            "extend": ["lease"],
            "checkpoint": ["recovery_point", "state"],
        }[name]
        given = {argument: arguments[argument] for argument in takes}
        self.perform(client, name, key=key, token=self.token(client, key, token, which), **given)

    @step(
        2,
        when=lambda self: self.usable and self.store.versions,
        n=numbers,
        key=st.sampled_from([None, None, "a", "A"]),
        policy=st.sampled_from([None] * 6 + ["hold", "again", NO_POLICY]),
        lease=st.sampled_from(LEASES),
    )
    def claim_lapsed(self, *, n: int, key: str | None, policy: str | None, lease: timedelta | None) -> None:
        self.perform(pick(self.usable, n), "claim_lapsed", max_rows=9, lease=lease, policy=policy, key=key)

    @step(
        2,
        when=lambda self: self.usable and self.store.versions,
        n=numbers,
        key=keys,
        action=st.sampled_from(["complete", "release", "retry"]),
        reason=st.sampled_from(["asked"] * 9 + [None]),
        attempt=st.sampled_from([None, None, None, 1, 2]),
        force=st.sampled_from([False, False, True]),
        response=responses,
    )
    def resolve(self, *, n: int, key: str, action: str, response: model.Response, **arguments: Any) -> None:
        """Mostly about a key that is there."""
        aims = [(client, key) for client in self.usable for key in KEYS if client.sees_unfinished(key)]
        client, key = pick(aims, n) if aims else (pick(self.usable, n), key)
        answer = response if action == "complete" else model.Response()
        self.perform(client, "resolve", key=key, action=action, response=answer, **arguments)

    @step(1, when=lambda self: self.usable, n=numbers, key=keys)
    def lookup(self, n: int, key: str) -> None:
        self.perform(pick(self.usable, n), "lookup", key=key)

    @step(
        3,
        when=lambda self: self.usable,
        n=numbers,
        name=st.sampled_from(["once", "once", "once_many", "once_many", "once_undo"]),
        batch=st.lists(st.sampled_from(["b", "b", "A", "a"]), min_size=1, max_size=3),
        policy=policies,
    )
    def mark(self, n: int, name: str, batch: list[str], policy: str) -> None:
        if name == "once":
            self.perform(pick(self.usable, n), "once", key=batch[0], policy=policy)
        elif name == "once_many":
            self.perform(pick(self.at_work or self.usable, n), "once_many", keys=batch, policy=policy)
        else:
            sessions = [client for client in self.at_work if client.has_marked] or self.usable
            self.perform(pick(sessions, n), "once_undo", keys=batch)

    @step(
        2,
        when=lambda self: self.usable,
        n=numbers,
        key=keys,
        fingerprint=fingerprints,
        handler=st.sampled_from(HANDLERS),
        response=responses,
        policy=policies,
    )
    def run(
        self, *, n: int, key: str, fingerprint: bytes | None, handler: str, response: model.Response, policy: str
    ) -> None:
        self.perform(
            pick(self.usable, n),
            "run",
            key=key,
            fingerprint=fingerprint,
            handler=handler,
            response=response,
            policy=policy,
        )

    @step(2, when=lambda self: self.usable and self.calls, n=numbers, back=st.integers(0, 5))
    def repeat(self, n: int, back: int) -> None:
        """An acknowledgement was lost, or the message came twice: the same call again, by any session."""
        name, arguments = self.calls[-1 - back % len(self.calls)]
        self.perform(pick(self.usable, n), name, **arguments)

    @step(1, when=lambda self: self.usable, n=numbers, which=st.sampled_from(MALFORMED))
    def misuse(self, n: int, which: tuple[str, str, dict[str, Any]]) -> None:
        client = pick(self.usable, n)
        expected, name, arguments = which
        self.adjust(client)
        actual = outcome_of(lambda: call(client, name, {"scope": self.scope, **arguments}))
        may_fail = client.model.may_fail_to_serialize
        client.model.take_snapshot()
        client.model.fail()
        self.count(name, actual)
        assert actual == expected or (actual == "40001" and may_fail), f"{name}: {actual}, but expected {expected}"

    @step(
        6,
        when=lambda self: self.contended,
        n=numbers,
        m=numbers,
        name=st.sampled_from(
            ["complete", "complete", "release", "release", "defer", "extend", "checkpoint", "resolve", "resolve"]
        ),
        stale=rarely,
        which=numbers,
        alike=st.booleans(),
        ending=st.sampled_from(["commit", "commit", "rollback"]),
    )
    def wait(self, *, n: int, m: int, name: str, stale: bool, which: int, alike: bool, ending: str) -> None:
        """An owner's call that meets a row which another transaction holds, and waits until that has ended.

        The model makes the call afterwards: what matters is what the row is then. Only the snapshot is older.
        """
        holder, key = pick(self.contended, n)
        client = pick([client for client in self.usable if client is not holder], m)
        arguments: dict[str, Any] = {"key": key}
        if name != "resolve":
            arguments["token"] = self.committed_token(key, stale, which)
        more: dict[str, dict[str, Any]] = {
            "complete": {"response": RESPONSES[1 + alike]},
            "release": {},
            "defer": {"retry_in": None, "reason": "late"},
            "extend": {"lease": None},
            "checkpoint": {"recovery_point": "charged", "state": STATES[alike]},
            "resolve": {
                "action": "complete",
                "reason": "asked",
                "attempt": None,
                "force": alike,
                "response": RESPONSES[1 + alike],
            },
        }
        arguments |= more[name]
        self.adjust(client, patience="20s")
        client.model.take_snapshot()
        before = self.now()
        background = Background(lambda: outcome_of(lambda: call(client, name, self.in_sql(name, arguments))))
        wait_until(lambda: background.done() or self.stage.is_blocked(client), f"{name} to wait or to end")
        if not background.done():
            assert self.store.row_holder(key, but=client.transaction) is holder.transaction, f"{name} waits for nobody"
            before = self.now()
            self.end_transaction(holder, ending)
            self.count(f"waited for {ending}", f"{name} {label(background.result())}")
        self.compare(client, name, arguments, background.result(), before)

    def end_transaction(self, client: Client, how: str) -> None:
        may_fail = client.model.may_fail_to_serialize
        actual = outcome_of(lambda: client.execute(how))
        self.count(how, "done" if actual == [] else actual)
        if how == "rollback" or (actual == "40001" and may_fail):
            client.model.rollback()
            assert actual in ([], "40001")
        else:
            expected = outcome_of(client.model.commit)
            expected = expected if isinstance(expected, str) else []
            assert actual == expected, f"{how}: {actual}, but expected {expected}"

    # what happens beside the sessions

    @step(2, when=lambda self: self.store.versions)
    def purge(self) -> None:
        before = self.now()
        self.beside("select idem.purge(10000)", [])
        for fate in self.store.purge(model.Moment(model.Reading(before, self.now()))) or {"nothing"}:
            self.count("purge", fate)

    @step(1, when=lambda self: self.store.versions, key=st.sampled_from([None, "a", "A", "b"]))
    def forget(self, key: str | None) -> None:
        [(forgotten,)] = self.beside("select idem.forget(%s, %s)", [self.scope, key])
        assert forgotten == self.store.forget(key)
        self.count("forget", "forgotten" if forgotten else "nothing")

    @step(
        1,
        # what a transaction with an old snapshot goes by are the settings of then
        when=lambda self: (
            not any(client.transaction and client.transaction.keeps_its_snapshot for client in self.clients)
        ),
        name=st.sampled_from([policy.name for policy in POLICIES]),
        change=st.sampled_from(
            [
                ("on_lapse", "hold"),
                ("on_lapse", "retry"),
                ("max_attempts", None),
                ("max_attempts", 3),
                ("max_claims", 4),
                ("tombstone", 0 * HOUR),
                ("tombstone", 6 * HOUR),
                ("min_retention", HALF),
                ("min_retention", 24 * HOUR + HALF),
                ("ttl", 5 * HOUR + HALF),
            ]
        ),
    )
    def change_a_policy(self, name: str, change: tuple[str, Any]) -> None:
        """It counts from the next call on, for the keys that are there as well."""
        column, value = change
        self.stage.policies_changed = True
        set_policy(self.stage.observer, name, **{column: value})
        setattr(self.store.policies[name], column, value)
        self.count("policy", column)

    def beside(self, statement: str, arguments: list[Any]) -> list[Any]:
        """A call in a transaction of its own; it must not wait for any of the sessions."""
        observer = self.stage.observer
        observer.execute(f"set idem.clock_offset = '{self.offset.total_seconds()} seconds'")
        observer.execute(f"set lock_timeout = '{PATIENCE}'")
        return observer.execute(statement.encode(), arguments).fetchall()

    # how a call is made and compared

    def perform(self, client: Client, name: str, **arguments: Any) -> None:
        self.calls.append((name, arguments))
        self.adjust(client)
        before = self.now()
        actual = outcome_of(lambda: call(client, name, self.in_sql(name, arguments)))
        self.compare(client, name, arguments, actual, before)

    def compare(self, client: Client, name: str, arguments: dict[str, Any], actual: Any, before: datetime) -> None:
        now = model.Moment(model.Reading(before, self.now()))
        note(f"{client.name} {name} {arguments}")
        self.count(name, label(actual))
        if actual == "40001" and client.model.may_fail_to_serialize:
            client.model.fail()
            return
        if actual == "IK004" and name == "reserve" and arguments["mode"] == "leased" and client.model.may_be_refused:
            client.model.fail()
            return
        known = dict(arguments)
        if name in ("reserve", "run") and known.get("token") is None:
            # made by the server
            made = getattr(actual, "token", None)
            known["token"] = made or UUID(int=1)
            if made is not None:
                assert made not in self.tokens
                self.tokens.append(made)
        if name == "claim_lapsed":
            known["made"] = {} if isinstance(actual, str) else {row.key: row.token for row in actual}
            assert not set(known["made"].values()) & set(self.tokens)
            self.tokens += known["made"].values()
        if name != "once_undo":
            known = {"now": now, **known}
        expected = outcome_of(lambda: getattr(client.model, name)(**known))
        difference = compare(expected, actual)
        assert not difference, f"{name}({arguments}): {difference}\nactual: {actual}\nexpected: {expected}"
        if name == "reserve" and label(actual) == "started":
            self.check_downstream_key(arguments["key"], actual.downstream_key)
        self.take_effect(client, name, arguments, actual)

    def take_effect(self, client: Client, name: str, arguments: dict[str, Any], actual: Any) -> None:
        """Do the work that a successful completion commits, in its transaction; or take it back."""
        done: list[str] = []
        if (name, label(actual)) in (("complete", "True"), ("run", "started"), ("once", "first")) or (
            (name, label(actual), arguments.get("action")) == ("resolve", "True", "complete")
        ):
            done = [arguments["key"]]
        elif name == "once_many" and not isinstance(actual, str):
            done = [row.key for row in actual if row.outcome == "first"]
        elif name == "once_undo" and actual != 0:
            self.business(
                client,
                "delete from public.effect where scope = %s and key = any(%s) and mark"
                " and by = pg_current_xact_id_if_assigned()",
                [self.scope, arguments["keys"]],
            )
        for key in done:
            self.business(
                client,
                "insert into public.effect select %s, %s, created_at, %s from idem.lookup(%s, %s)",
                [self.scope, key, name.startswith("once"), self.scope, key],
            )

    def business(self, client: Client, statement: str, arguments: list[Any]) -> None:
        may_fail = client.model.may_fail_to_serialize
        actual = outcome_of(lambda: client.execute(statement, arguments))
        if actual == "40001" and may_fail and client.usable:
            client.model.fail()
        elif client.usable:
            assert actual == []
            client.model.write()

    def check_downstream_key(self, key: str, given: UUID) -> None:
        """The same for every attempt at a key, and another for every other key."""
        assert self.downstream_keys.setdefault(key, given) == given
        assert len(set(self.downstream_keys.values())) == len(self.downstream_keys)

    # what must hold after every step

    @invariant()
    def check(self) -> None:
        self.stage.steps += 1
        self.what_is_committed_is_what_the_model_says()
        self.a_life_of_a_key_has_one_effect_if_it_is_finished_and_none_before()

    def what_is_committed_is_what_the_model_says(self) -> None:
        now = model.Moment(model.Reading(self.now(), self.now()))
        self.stage.observer.execute(f"set idem.clock_offset = '{self.offset.total_seconds()} seconds'")
        cursor: psycopg.Cursor[Any] = self.stage.observer.cursor(row_factory=namedtuple_row)
        shown = {
            row.key: row for row in cursor.execute("select * from idem.keys where scope = %s", [self.scope]).fetchall()
        }
        expected = {key: row for key in KEYS if (row := self.store.committed(key)) is not None}
        assert shown.keys() == expected.keys()
        for key, row in expected.items():
            difference = compare(listed(row, now), shown[key])
            assert not difference, f"key {key}: {difference}"

    def a_life_of_a_key_has_one_effect_if_it_is_finished_and_none_before(self) -> None:
        wrong = self.stage.observer.execute(
            "select key, life, effects, finished"
            " from (select key, life, count(*) as effects from public.effect"
            " where scope = %(scope)s group by key, life) as e"
            " full join (select key, created_at as life, completed_at is not null as finished from idem.keys"
            " where scope = %(scope)s) as k using (key, life)"
            " where coalesce(effects, 0) <> coalesce(finished, true)::int",
            {"scope": self.scope},
        ).fetchall()
        assert not wrong

    # who and what there is

    @property
    def idle(self) -> list[Client]:
        return [client for client in self.clients if client.transaction is None]

    @property
    def busy(self) -> list[Client]:
        return [client for client in self.clients if client.transaction is not None]

    @property
    def failed(self) -> list[Client]:
        return [client for client in self.clients if not client.usable]

    @property
    def at_work(self) -> list[Client]:
        return [client for client in self.busy if client.usable]

    @property
    def usable(self) -> list[Client]:
        return [client for client in self.clients if client.usable]

    @property
    def with_savepoints(self) -> list[Client]:
        return [client for client in self.busy if client.transaction and client.transaction.savepoints]

    @property
    def contended(self) -> list[tuple[Client, str]]:
        """Transactions that hold a committed row, where another session could wait for it."""
        return [
            (client, key)
            for client in self.at_work
            for key in KEYS
            if client.transaction
            and key in client.transaction.work.rows_held
            and self.store.committed(key) is not None
            and any(other is not client for other in self.usable)
        ]

    def token(self, client: Client, key: str, kind: str, which: int) -> UUID:
        """The owner's as the session sees it, an earlier one, or a new one."""
        if kind == "nil":
            return UUID(int=0)
        if kind == "owner":
            row = client.sees(key)
            if row is not None and row.token not in (MARK, NOBODY):
                return row.token
        if kind != "fresh" and self.tokens:
            return self.tokens[-1 - which % len(self.tokens)]
        self.tokens.append(uuid5(MARK, f"{self.scope} {len(self.tokens)}"))
        return self.tokens[-1]

    def committed_token(self, key: str, stale: bool, which: int) -> UUID:
        row = self.store.committed(key)
        if row is not None and row.token not in (MARK, NOBODY) and not stale:
            return row.token
        return pick(self.tokens, which) if self.tokens else uuid5(MARK, "a stranger")

    def now(self) -> datetime:
        """The clock of this machine is the server's; all sessions have moved theirs by the same length."""
        return datetime.now(UTC) + self.offset

    def adjust(self, client: Client, patience: str = PATIENCE) -> None:
        """Set the session's clock, anew for every call, since a rollback takes such a setting back."""
        client.execute(
            f"set idem.clock_offset = '{self.offset.total_seconds()} seconds'; set lock_timeout = '{patience}'"
        )

    def in_sql(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the SQL function takes them."""
        given = {"scope": self.scope, **arguments}
        response = given.pop("response", None)
        if name in ("complete", "resolve"):
            given |= vars(response)
        elif name == "run":
            given["args"] = {
                "scope": self.scope,
                "key": arguments["key"],
                "status": response.status,
                "headers": response.headers,
                "body": response.body.hex() if response.body is not None else None,
            }
            given["handler"] = f"public.{arguments['handler']}(jsonb)"
        return given

    def count(self, what: str, outcome: str) -> None:
        note(f"    {what}: {outcome}")
        self.stage.reached[f"{what}: {outcome}"] += 1


def pick(choices: list[Any], n: int) -> Any:
    return choices[n % len(choices)]


def call(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    """A row, the value of a function that returns one, or the rows of once_many."""
    named = ", ".join(f"{argument} => %({argument})s" for argument in arguments)
    given = {
        argument: Jsonb(value) if argument in ("fields", "state", "headers", "args") and value is not None else value
        for argument, value in arguments.items()
    }
    rows = client.execute(f"select * from idem.{name}({named})", given)
    if name in ("once_many", "claim_lapsed"):
        return rows
    if name == "once":
        return [rows[0][0]]
    return rows[0] if len(rows[0]) > 1 else rows[0][0]


def outcome_of(act: Callable[[], Any]) -> Any:
    """What is returned, or the SQLSTATE."""
    try:
        return act()
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise
        return error.sqlstate
    except model.Refused as refused:
        return refused.sqlstate


def label(actual: Any) -> str:
    if isinstance(actual, str):
        return actual
    if isinstance(actual, datetime):
        return "renewed"
    if isinstance(actual, list) and actual and hasattr(actual[0], "claims"):
        return "claimed"
    if isinstance(actual, list):
        return " ".join(sorted({part if isinstance(part, str) else part.outcome for part in actual})) or "nothing"
    return str(getattr(actual, "outcome", actual))


def listed(row: model.Row, now: model.Moment) -> dict[str, Any]:
    """The row as idem.keys shows it."""
    phase = row.phase(now, None)
    return {
        "policy": row.policy.name,
        "mode": "leased" if row.leased else "atomic",
        "outcome": "expired" if phase == "absent" else phase,
        "attempt": row.attempt,
        "created_at": row.created_at,
        "lease_until": row.lease_until,
        "released_at": row.released_at,
        "completed_at": row.completed_at,
        "expires_at": row.retained_until,
        "status": row.response.status,
        "recovery_point": row.recovery_point,
        "unfinished": row.completed_at is None,
        "claims": row.claims if row.completed_at is None else None,
        "max_claims": row.policy.max_claims,
        "claim_after": row.claim_after,
        "reason": row.reason,
    }


def answered(answer: model.Answer) -> dict[str, Any]:
    """The answer as the type idem.reservation shows it, without downstream_key."""
    shown = {name: value for name, value in vars(answer).items() if name not in ("response", "from_run")}
    return shown | vars(answer.response)


def claimed(claim: model.Claim) -> dict[str, Any]:
    """The claim as the type idem.lapsed_reservation shows it, without downstream_key."""
    shown = {
        "token": claim.taken.token,
        "attempt": claim.found.attempt,
        "recovery_point": claim.found.recovery_point,
        "state": claim.found.state,
        "policy": claim.found.policy.name,
        "created_at": claim.found.created_at,
        "claims": claim.found.claims + 1,
        "reason": claim.found.reason,
    }
    return shown | ({"lapsed_at": claim.found.lease_until} if claim.found.leased else {})


def compare(expected: Any, actual: Any) -> str:
    """What differs, or nothing."""
    if isinstance(expected, dict) and isinstance(actual, list):
        if expected.keys() != {row.key for row in actual} or len(expected) != len(actual):
            return f"claimed {[row.key for row in actual]}, not {list(expected)}"
        return ", ".join(filter(None, (compare(claimed(expected[row.key]), row) for row in actual)))
    if isinstance(expected, model.Answer):
        if isinstance(actual, str):
            return f"refused with {actual}"
        has_downstream_key = expected.outcome == "started" and not expected.from_run
        if (actual.downstream_key is not None) != has_downstream_key:
            return "downstream_key"
        expected = answered(expected)
    if isinstance(expected, dict):
        return ", ".join(
            f"{name} is {getattr(actual, name)}, not {value}"
            for name, value in expected.items()
            if not same(value, getattr(actual, name))
        )
    if isinstance(actual, list):
        expected, actual = (
            ([expected] if isinstance(expected, str) else expected),
            [part if isinstance(part, str) else tuple(part) for part in actual],
        )
    return "" if same(expected, actual) else f"{actual}, not {expected}"


def same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, model.Moment):
        return isinstance(actual, datetime) and expected.agrees_with(actual)
    if isinstance(expected, model.Wait):
        return isinstance(actual, timedelta) and expected.least <= actual.total_seconds() <= expected.most
    return bool(expected == actual) and type(expected) is type(actual)

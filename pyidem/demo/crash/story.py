"""What happens, in order: refunds, deaths, unknown outcomes, a sweeper, and the books compared."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Self
from uuid import UUID

import psycopg
from psycopg import sql

from pyidem import migrate
from pyidem.demo.crash import bank, refunds
from pyidem.demo.crash.bank import Bank, Fate
from pyidem.embedded import Cluster, embedded_bindir

RESOLVER: Final = "pyidem.demo.crash.refunds:ask_the_bank"

_SHOP, _BANK = "shop", "bank"
_SERVICE = "refund_service"
_CLIENT = "shop-1"
_WORKERS = 4
_LAPSE_SECONDS = 30
_UNKNOWN = {"status": 409, "code": "idempotency_outcome_unknown"}
# The data is thrown away, and no kill -9 takes the operating system's cache along.
_SETTINGS: Final = {"fsync": "off", "full_page_writes": "off", "log_min_messages": "fatal"}

Report = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """What came of it. `violations` are the promises that were broken."""

    refunds: int = 0
    killed: int = 0
    unknown: int = 0
    swept: dict[str, int] = field(default_factory=dict)
    cents_at_bank: int = 0
    cents_in_books: int = 0
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Order:
    """A refund that a client wants, under one key."""

    order: str
    cents: int
    key: str

    def request(self) -> str:
        """Return the line that asks for it."""
        return json.dumps({"client": _CLIENT, "key": self.key, "order": self.order, "cents": self.cents})


class Desk:
    """A place where a worker sits; whoever dies there is replaced."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._process = self._start()

    def ask(self, order: Order) -> Any:
        """Return the answer, or None where the worker has died over it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(order.request(), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        self.close()
        if self._process.returncode >= 0:
            raise RuntimeError(f"a worker ended by itself, with {self._process.returncode}")
        self._process = self._start()
        return None

    def close(self) -> None:
        """Send the worker home."""
        self._process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pyidem.demo.crash.worker"]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(self._environment)
        )


class Desks:
    """All of them; each does one thing at a time."""

    def __init__(self, count: int, environment: Mapping[str, str]) -> None:
        self._all = [Desk(environment) for _ in range(count)]
        self._free = list(self._all)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for desk in self._all:
            desk.close()

    def ask(self, orders: Iterable[Order]) -> dict[Order, Any]:
        """Ask for every one of some refunds, several at a time; return the answers."""
        orders = list(orders)
        with ThreadPoolExecutor(len(self._all)) as clients:
            return dict(zip(orders, clients.map(self._ask, orders), strict=True))

    def _ask(self, order: Order) -> Any:
        with self._lock:
            desk = self._free.pop()
        try:
            return desk.ask(order)
        finally:
            with self._lock:
                self._free.append(desk)


def run(count: int, seed: int, report: Report, *, resolver: str = RESOLVER) -> Outcome:
    """Play it. `report` is told what happens; `resolver` finds out for the sweeper. Nothing is left behind."""
    outcome = Outcome(refunds=count)
    rng = Random(seed)  # noqa: S311 - chance, not secrets
    orders = [
        Order(f"A-{number:03}", rng.randint(100, 99_999), str(UUID(int=rng.getrandbits(128))))
        for number in range(1, count + 1)
    ]
    with ExitStack() as cleanup:
        report("Starting a PostgreSQL server with the databases of a shop and of its bank")
        cluster = cleanup.enter_context(Cluster(embedded_bindir(), settings=_SETTINGS))
        _create_databases(cluster)
        banker = cleanup.enter_context(Bank(cluster.dsn(_BANK), _fates(orders, rng)))
        environment = _environment(cluster, banker.port)
        desks = cleanup.enter_context(Desks(_WORKERS, environment | {"PGUSER": _SERVICE}))
        shop = cleanup.enter_context(psycopg.connect(cluster.dsn(_SHOP), autocommit=True))

        report(f"{count} refunds by {_WORKERS} workers; some are killed (-9) while the bank answers")
        answers = desks.ask(orders)
        outcome.killed = banker.killed
        stuck = [order for order, answer in answers.items() if answer is None]
        _wait_for_the_leases(shop)
        report(f"{len(stuck)} clients got no answer. They ask again:")
        again = desks.ask(stuck)
        outcome.unknown = sum(answer == _UNKNOWN for answer in again.values())
        report(f"  {outcome.unknown} x 409 idempotency_outcome_unknown: nobody knows what has been paid\n")

        report("$ pyidem list")
        report(_pyidem(environment, "list"))
        report(f"$ pyidem sweep --resolver {resolver}")
        swept = _pyidem(environment | {"PGUSER": _SERVICE}, "sweep", "--resolver", resolver, "--json")
        outcome.swept = json.loads(swept)
        report(", ".join(f"{number} {what}" for what, number in outcome.swept.items() if number) + "\n")

        report(f"{len(stuck)} clients ask once more, and get their answers")
        answers |= desks.ask(stuck)
        entries = shop.execute("select order_no, cents, transfer from refund").fetchall()
        with psycopg.connect(cluster.dsn(_BANK)) as books:
            transfers = books.execute("select order_no, cents, 'tr_' || id from transfer").fetchall()
    _judge(outcome, orders, answers, stuck=len(stuck), transfers=transfers, entries=entries)
    return outcome


def _fates(orders: list[Order], rng: Random) -> dict[str, Fate]:
    """Let the workers of a third of the orders die: most when the bank has paid, some before."""
    chosen = rng.sample(orders, len(orders) // 3)
    return {order.order: Fate.BEFORE if number % 3 == 0 else Fate.AFTER for number, order in enumerate(chosen)}


def _create_databases(cluster: Cluster) -> None:
    role = sql.Identifier(_SERVICE)
    with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} login password {}").format(role, cluster.password))
        for name in (_SHOP, _BANK):
            admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    migrate.upgrade(cluster.dsn(_SHOP))
    with psycopg.connect(cluster.dsn(_SHOP)) as shop:
        shop.execute(refunds.TABLES)
        shop.execute(sql.SQL("grant insert on refund to {}").format(role))
        shop.execute("select idem.grant_client(%(role)s), idem.grant_resolver(%(role)s)", {"role": _SERVICE})
    with psycopg.connect(cluster.dsn(_BANK)) as books:
        books.execute(bank.TABLES)


def _environment(cluster: Cluster, port: int) -> dict[str, str]:
    """Return that of the programs: it leads them to the shop's database and to the bank."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG") and name != "PYIDEM_DSN"}
    return kept | {
        "PGHOST": cluster.host,
        "PGPORT": str(cluster.port),
        "PGUSER": cluster.user,
        "PGPASSWORD": cluster.password,
        "PGDATABASE": _SHOP,
        refunds.BANK_PORT: str(port),
    }


def _wait_for_the_leases(shop: psycopg.Connection[Any]) -> None:
    """Return when every key whose worker has died has lapsed."""
    deadline = time.monotonic() + _LAPSE_SECONDS
    while shop.execute("select from idem.keys where unfinished and outcome = 'in_progress'").fetchone() is not None:
        if time.monotonic() > deadline:
            raise TimeoutError("the keys of dead workers do not lapse")
        time.sleep(0.1)


def _pyidem(environment: Mapping[str, str], *arguments: str) -> str:
    """Run the command line, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pyidem", *arguments], check=False, capture_output=True, text=True, env=dict(environment)
    )
    if not done.stdout:
        raise RuntimeError(f"pyidem {arguments[0]} failed:\n{done.stderr}")
    return done.stdout


def _judge(
    outcome: Outcome,
    orders: list[Order],
    answers: Mapping[Order, Any],
    *,
    stuck: int,
    transfers: list[tuple[Any, ...]],
    entries: list[tuple[Any, ...]],
) -> None:
    """Compare the books of shop and bank with what was asked for and with the answers."""
    outcome.cents_at_bank = sum(cents for _, cents, _ in transfers)
    outcome.cents_in_books = sum(cents for _, cents, _ in entries)
    wanted = Counter((order.order, order.cents) for order in orders)
    told = Counter(
        (body["order"], body["cents"], body["transfer"])
        for answer in answers.values()
        if (body := (answer or {}).get("body")) is not None
    )
    checks = {
        "not every unanswered refund was unknown": outcome.unknown == stuck == outcome.killed > 0,
        "the sweeper has not settled each of them": outcome.swept["completed"] + outcome.swept["released"] == stuck,
        "bank and books do not agree": Counter(transfers) == Counter(entries),
        "the bank has not paid each refund once": Counter(each[:2] for each in transfers) == wanted,
        "not every client was told the transfer of its own refund": told == Counter(entries),
    }
    outcome.violations = [what for what, kept in checks.items() if not kept]

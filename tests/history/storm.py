"""Many clients on a few keys, and whatever can be killed is killed meanwhile.

The clients reach the server through `wire`. What they have recorded and what is in the database in the end is judged by
`check`.
"""

import itertools
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import namedtuple_row

from pyidem.embedded import Cluster
from tests.history import client
from tests.history.check import Remains, Violation, judge
from tests.history.record import History
from tests.history.wire import Wire
from tests.history.world import FAMILIES, SCOPE
from tests.support.calls import set_policy
from tests.support.database import OWNER, ROOT, Database
from tests.support.waiting import wait_until

SETTINGS = {
    # the machine does not fail, only processes do: what the kernel has, it keeps
    "fsync": "off",
    "full_page_writes": "off",
    # the commits themselves have to see to it that what was acknowledged is written
    "wal_writer_delay": "10s",
    "wal_writer_flush_after": "1GB",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "log_min_messages": "error",
    "log_line_prefix": "%m [%p] %a %e ",
}
# Forked from a process that has everything imported: a killed client is replaced at once.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([client.__name__])
SCHEMA = Path(__file__).with_name("schema.sql")
APPLICATION = "storm_app"


@dataclass
class Outcome:
    """What came of it: figures, and the violations that were found."""

    figures: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)

    def report(self) -> str:
        """Return all of it as lines of text."""
        lines = [f"{count:9,} {what}" for what, count in self.figures.items()]
        return "\n".join([*lines, f"{len(self.violations):9,} violations", *map(str, self.violations[:20])])

    def __iadd__(self, other: "Outcome") -> Self:
        self.figures.update(other.figures)
        self.violations += other.violations
        return self


class Clients:
    """The processes; one that has been killed is replaced by another one with a record of its own."""

    def __init__(self, dsn: str, directory: Path, count: int, seconds: float, seed: str) -> None:
        self._dsn = dsn
        self._directory = directory
        self._end = time.monotonic() + seconds
        self._seed = seed
        self._numbers = itertools.count(1)
        self._running = [self._start() for _ in range(count)]

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [process.pid for process in self._running]

    def kill(self, rng: Random) -> None:
        """Kill -9 one of them, and start another."""
        index = rng.randrange(len(self._running))
        process = self._running[index]
        process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            self._running[index] = self._start()

    def finish(self) -> None:
        """Wait until all have ended by themselves."""
        for process in self._running:
            process.join(60)
            assert process.exitcode == 0, self._complaints()

    def stop(self) -> None:
        """Kill those that still run."""
        for process in self._running:
            process.kill()
            process.join()

    def history(self) -> History:
        """Return what all of them have done."""
        return History.read(self._directory.glob("*.jsonl"))

    def _start(self) -> Any:
        name = f"{self._seed}.{next(self._numbers)}"
        left = max(0.0, self._end - time.monotonic())
        process = _CONTEXT.Process(target=client.main, args=(self._dsn, self._directory, name, left), daemon=True)
        process.start()
        return process

    def _complaints(self) -> str:
        return "\n".join(file.read_text() for file in self._directory.glob("*.err"))


class Nemesis:
    """Picks what goes wrong next, and sees to it that the server comes back."""

    def __init__(self, cluster: Cluster, database: Database, clients: Clients, rng: Random) -> None:
        self._cluster = cluster
        self._database = database
        self._clients = clients
        self._rng = rng
        self.done: Counter[str] = Counter()

    def strike(self) -> None:
        """Do one evil."""
        strikes: dict[Callable[[], str], int] = {
            self._kill_client: 6,
            self._end_backend: 6,
            self._kill_backend: 1,
            self._restart: 2,
        }
        [strike] = self._rng.choices(list(strikes), list(strikes.values()))
        self.done[strike()] += 1

    def _kill_client(self) -> str:
        self._clients.kill(self._rng)
        return "clients killed"

    def _end_backend(self) -> str:
        with self._admin() as admin:
            for pid in self._backends(admin)[:1]:
                admin.execute("select pg_terminate_backend(%s)", [pid])
        return "backends terminated"

    def _kill_backend(self) -> str:
        """The server takes this for a crash of its own, ends all sessions and recovers."""
        with self._admin() as admin:
            for pid in self._backends(admin):
                with suppress(ProcessLookupError):  # whoever it served may have hung up since
                    os.kill(pid, signal.SIGKILL)
                    break
            else:
                return "backends gone before they could be killed"
        wait_until(self._answers, "the server to be back")
        return "backends killed"

    def _restart(self) -> str:
        mode = self._rng.choice(["fast", "immediate"])
        self._cluster.restart(mode)  # type: ignore[arg-type]
        return f"restarts, {mode}"

    def _answers(self) -> bool:
        try:
            with self._admin():
                return True
        except psycopg.OperationalError:
            return False

    def _backends(self, admin: psycopg.Connection) -> list[int]:
        rows = admin.execute("select pid from pg_stat_activity where usename = %s", [APPLICATION]).fetchall()
        pids = [pid for (pid,) in rows]
        self._rng.shuffle(pids)
        return pids

    @contextmanager
    def _admin(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self._database.dsn, autocommit=True) as admin:
            yield admin


@contextmanager
def stage(cluster: Cluster, sources: Path) -> Iterator[Database]:
    """A database with pyidem from these sources, and the application's table, policies and role."""
    with psycopg.connect(cluster.dsn(), autocommit=True) as admin:
        for role in (OWNER, APPLICATION):
            admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(role), cluster.password))
        admin.execute(sql.SQL("create database {} owner {}").format(sql.Identifier(APPLICATION), sql.Identifier(OWNER)))
    # it goes with its server, which may be down by then
    with ExitStack() as cleanup:
        database = Database(cluster, APPLICATION, cleanup)
        database.psql(sources / "install.sql", user=OWNER)
        with psycopg.connect(database.dsn, autocommit=True) as admin:
            admin.execute(SCHEMA.read_text())  # type: ignore[arg-type]
            for family in FAMILIES.values():
                set_policy(admin, family.name, **family.policy)
            for grant in ("client", "resolver", "operator"):
                admin.execute(sql.SQL("select idem.{}({})").format(sql.Identifier(f"grant_{grant}"), APPLICATION))
            admin.execute(sql.SQL("grant select, insert on public.effect to {}").format(sql.Identifier(APPLICATION)))
        yield database


def through(dsn: str, port: int) -> str:
    """Return a connection string that takes another port."""
    return make_conninfo(**conninfo_to_dict(dsn) | {"port": port})


def weather(
    bindir: Path,
    directory: Path,
    *,
    seconds: float,
    seed: str,
    clients: int = 8,
    every: float = 0.8,
    sources: Path = ROOT / "sql",
) -> Outcome:
    """Run one storm and judge it."""
    rng = Random(seed)
    with Cluster(bindir, settings=SETTINGS) as cluster, stage(cluster, sources) as database:
        with Wire(cluster.port, Random(f"{seed}/wire")) as wire:
            dsn = through(database.dsn_of(APPLICATION), wire.port)
            crowd = Clients(dsn, directory, clients, seconds, seed)
            nemesis = Nemesis(cluster, database, crowd, rng)
            end = time.monotonic() + seconds
            try:
                while (left := end - time.monotonic()) > 0:
                    time.sleep(min(left, rng.expovariate(1 / every)))
                    nemesis.strike()
                crowd.finish()
            finally:
                crowd.stop()
        history = crowd.history()
        outcome = Outcome(figures(history) + nemesis.done + wire.cut, judge(history, remains(database)))
        if cores := [line for line in cluster.log().splitlines() if "PANIC" in line]:
            outcome.violations += [Violation("server", "", line) for line in cores]
        return outcome


def figures(history: History) -> Counter[str]:
    """Count what the clients did."""
    counts = Counter({"calls recorded": len(history.calls)})
    counts["operations"] = len({call.op for call in history.calls})
    counts.update(f"calls {call.ended}" for call in history.calls if call.ended != "ok")
    counts["answers seen"] = sum("body" in call.answer for call in history.calls)
    return counts


def remains(database: Database) -> Remains:
    """Read what is left in the database."""
    with psycopg.connect(database.dsn, autocommit=True, row_factory=namedtuple_row) as admin:

        def rows(query: str) -> list[Any]:
            return admin.execute(query).fetchall()  # type: ignore[arg-type]

        columns = "key, created_at, completed_at, expired_at, leased, status, headers, body"
        return Remains(
            effects=rows("select * from public.effect"),
            reservations=rows(f"select {columns} from idem_private.reservation where scope = '{SCOPE}'"),
            unfinished={row.key for row in rows("select key from idem_private.unfinished")},
            resolved={row.reason for row in rows("select reason from idem_private.event where event = 'resolved'")},
            at=rows("select clock_timestamp() as at")[0].at,
        )

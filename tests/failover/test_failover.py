"""The primary is lost and its standby takes over: what holds then, and what of it needs a synchronous standby."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pyidem.embedded import Cluster
from tests.history.check import Violation, judge
from tests.history.record import OK, History
from tests.history.storm import APPLICATION, SETTINGS, Clients, figures, remains, stage
from tests.support.calls import complete, lookup, reserve
from tests.support.database import ROOT, Database
from tests.support.server import Server
from tests.support.soak import MINUTES, SEED
from tests.support.standby import Standby
from tests.support.waiting import wait_until

ENOUGH = 150
LONGEST_SECONDS = 90


class Pair(NamedTuple):
    """The database of the storm on a primary, and on the standby that follows it."""

    primary: Cluster
    database: Database
    standby: Standby
    copy: Database

    @property
    def dsn(self) -> str:
        """A connection string that leads to whichever of them can be written to."""
        return make_conninfo(
            self.database.dsn_of(APPLICATION),
            host=f"{self.primary.host},{self.standby.host}",
            port=f"{self.primary.port},{self.standby.port}",
            target_session_attrs="read-write",
            connect_timeout="3",
        )

    def lose_the_primary(self) -> None:
        """It ends as in a crash, and the standby takes over."""
        os.kill(self.primary.pid, signal.SIGQUIT)
        self.standby.promote()

    def cut_off(self) -> None:
        """The standby does not hear of what is committed from now on."""
        with psycopg.connect(self.standby.dsn(), autocommit=True) as admin:
            admin.execute("alter system set primary_conninfo = ''")
            admin.execute("select pg_reload_conf()")
            wait_until(lambda: not admin.execute("select from pg_stat_wal_receiver").fetchall(), "it to be cut off")


@contextmanager
def replicated(installation: Server, *, synchronous: bool) -> Iterator[Pair]:
    with (
        Cluster(installation.bindir, settings=SETTINGS) as primary,
        stage(primary, ROOT / "sql") as database,
        Standby(installation.bindir, primary, SETTINGS) as standby,
        ExitStack() as cleanup,
        psycopg.connect(primary.dsn(), autocommit=True) as admin,
    ):
        wait_until(
            lambda: admin.execute("select state from pg_stat_replication").fetchall() == [("streaming",)],
            "the standby to follow",
        )
        if synchronous:
            admin.execute("alter system set synchronous_standby_names = '*'")
            admin.execute("select pg_reload_conf()")
            wait_until(
                lambda: admin.execute("select sync_state from pg_stat_replication").fetchall() == [("sync",)],
                "it to be synchronous",
            )
        admin.close()
        yield Pair(primary, database, standby, Database(standby, database.name, cleanup))


@pytest.mark.slow
@pytest.mark.timeout(MINUTES * 60 + 5 * LONGEST_SECONDS)
def test_with_a_synchronous_standby_a_failover_in_a_storm_breaks_no_promise(
    installation: Server, tmp_path: Path
) -> None:
    """The clients know both servers, and find the new one by themselves."""
    total: Counter[str] = Counter()
    end = time.monotonic() + MINUTES * 60
    for number in count(SEED):
        history, violations = failover_in_a_storm(installation, tmp_path / str(number), number)
        total.update(figures(history), failovers=1, violations=len(violations))
        print(total, flush=True)
        assert not violations, "\n".join(map(str, violations))
        if time.monotonic() >= end:
            break


def failover_in_a_storm(installation: Server, folder: Path, seed: int) -> tuple[History, list[Violation]]:
    folder.mkdir()
    with replicated(installation, synchronous=True) as pair:
        crowd = Clients(pair.dsn, folder, 6, LONGEST_SECONDS, f"failover-{seed}")
        try:
            wait_until(lambda: done(crowd) > ENOUGH, "something to be done", timeout=LONGEST_SECONDS)
            crowd.kill(Random(seed))
            pair.lose_the_primary()
            lost_at = time.monotonic_ns()
            wait_until(lambda: done(crowd, lost_at) > ENOUGH, "the new primary to be found", timeout=LONGEST_SECONDS)
        finally:
            crowd.stop()
        history = crowd.history()
        return history, judge(history, remains(pair.copy))


def done(crowd: Clients, since: int = 0) -> int:
    """How many calls have succeeded that began after a moment."""
    return sum(call.ended == OK and call.began > since for call in crowd.history().calls)


@pytest.fixture(scope="module")
def paid_outside() -> set[UUID]:
    """The keys that a provider has been given."""
    return set()


@pytest.fixture(scope="module")
def afterwards(installation: Server, paid_outside: set[UUID]) -> Iterator[Pair]:
    """A failover to an asynchronous standby that had not heard of what was committed last."""
    with replicated(installation, synchronous=False) as pair:
        buy(pair, "kept")
        wait_until(lambda: in_state(pair.copy, "kept") == "completed", "the standby to have it")
        pair.cut_off()
        buy(pair, "lost")
        with psycopg.connect(pair.dsn) as shop:
            paid_outside.add(reserve(shop, "refund", mode="leased").downstream_key)
        pair.lose_the_primary()
        yield pair


def test_with_an_asynchronous_standby_atomic_work_is_lost_together_with_its_key(afterwards: Pair) -> None:
    with psycopg.connect(afterwards.dsn) as shop:
        assert shop.execute("select key from public.effect").fetchall() == [("kept",)]
        assert reserve(shop, "kept").outcome == "replay"
        # the retry does the work, which has gone: it takes effect once
        assert reserve(shop, "lost").outcome == "started"
        shop.rollback()


def test_with_an_asynchronous_standby_a_leased_key_is_forgotten_though_its_effect_outside_is_not(
    afterwards: Pair, paid_outside: set[UUID]
) -> None:
    """The next attempt does not know that there was one; all that is left is the downstream key, which is the same."""
    with psycopg.connect(afterwards.dsn) as shop:
        second = reserve(shop, "refund", mode="leased")
    assert (second.outcome, second.attempt) == ("started", 1)
    assert {second.downstream_key} == paid_outside


def buy(pair: Pair, key: str) -> None:
    """Work and answer in one transaction, which is acknowledged."""
    with psycopg.connect(pair.dsn) as shop:
        token = reserve(shop, key).token
        shop.execute("insert into public.effect (op, key, kind) values ('1', %s, 'atomic')", [key])
        complete(shop, key, token, status=201)


def in_state(database: Database, key: str) -> str:
    with psycopg.connect(database.dsn) as reader:
        return str(lookup(reader, key).outcome)

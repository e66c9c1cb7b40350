"""`pyidem sweep`: lapsed keys are handed to a function that is named on the command line."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.cli.support import PYIDEM, environment, outcome, pyidem, stick
from tests.support.database import OWNER, Database
from tests.support.waiting import wait_until

MODULE = """\
import asyncio, os, time
from pathlib import Path
import psycopg
from pyidem import AsyncIdem, AsyncSweeper, Idem, Sweeper

def settle(op):
    with op.transaction() as connection:
        connection.execute("insert into settled values (%s)", [op.key])
        op.complete(200, {"key": op.key})

async def settle_async(op):
    async with op.transaction() as connection:
        await connection.execute("insert into settled values (%s)", [op.key])
        op.complete(200, {"key": op.key})

def settle_some(op):
    if op.key == "bad":
        raise ConnectionError("the password is hunter2")
    settle(op)

def fail(op):
    raise ConnectionError("the password is hunter2")

def slow(op):
    Path("at-work").touch()
    while not Path("go-on").exists():
        time.sleep(0.005)
    settle(op)

async def slow_async(op):
    Path("at-work").touch()
    while not Path("go-on").exists():
        await asyncio.sleep(0.005)
    await settle_async(op)

def unavailable(op):
    op.complete(503)

def hang(op):
    time.sleep(3600)

class Service:
    settle = staticmethod(settle)

sweeper = Sweeper(Idem(lambda: psycopg.connect("")), settle, scope="mine")
not_callable = 7
"""


@pytest.fixture
def shop(db: Database) -> Database:
    with psycopg.connect(db.dsn, autocommit=True) as connection:
        connection.execute(f"create table settled (key text primary key); grant insert on settled to {OWNER}")
    return db


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The directory of an application with resolvers."""
    (tmp_path / "resolvers.py").write_text(MODULE)
    return tmp_path


def counts(stdout: str) -> dict[str, int]:
    names, numbers = (line.split() for line in stdout.splitlines())
    return dict(zip(names, map(int, numbers), strict=True))


NOTHING = {"completed": 0, "released": 0, "deferred": 0, "failed": 0, "lost": 0}


@pytest.mark.parametrize("name", ["settle", "settle_async", "Service.settle"])
def test_once_it_settles_what_there_is(name: str, shop: Database, app: Path) -> None:
    stick(shop, ("s", "a"), ("s", "b"))
    done = pyidem(shop, "sweep", "--resolver", f"resolvers:{name}", cwd=app)
    assert done.returncode == 0
    assert counts(done.stdout) == NOTHING | {"completed": 2}
    assert outcome(shop, "s", "a") == outcome(shop, "s", "b") == "completed"
    log = done.stderr.splitlines()
    assert len(log) == 2
    assert "INFO sweeper.completed scope='s' key='a' policy='default' attempt=1 claims=1 seconds=" in log[0]
    again = pyidem(shop, "sweep", "--resolver", f"resolvers:{name}", "--json", cwd=app)
    assert (again.returncode, json.loads(again.stdout)) == (0, NOTHING)


def test_what_fails_is_logged_and_told_by_the_exit_code(shop: Database, app: Path) -> None:
    stick(shop, ("s", "bad"), ("s", "good"))
    command = [PYIDEM, "sweep", "--resolver", "resolvers:settle_some", "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment(shop, OWNER), cwd=app)
    assert (done.returncode, json.loads(done.stdout)) == (3, NOTHING | {"completed": 1, "failed": 1})
    assert "sweeper.failed scope='s' key='bad'" in done.stderr
    assert "reason='ConnectionError'" in done.stderr
    with psycopg.connect(shop.dsn) as connection:
        assert connection.execute("select reason from idem.keys where key = 'bad'").fetchone() == ("ConnectionError",)

    stick(shop, ("s", "worse"))
    command[3] = "resolvers:fail"
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment(shop, OWNER), cwd=app)
    assert (done.returncode, json.loads(done.stdout)) == (1, NOTHING | {"failed": 1})


def test_filters_and_limits(shop: Database, app: Path) -> None:
    with psycopg.connect(shop.dsn, autocommit=True) as connection:
        connection.execute("insert into idem.policies (name) values ('other')")
    stick(shop, ("s", "a"), ("s", "b"), ("t", "c"))
    stick(shop, ("s", "d"), policy="other")
    sweep = ("sweep", "--resolver", "resolvers:settle", "--json")
    for options, key in ((("--policy", "other"), "d"), (("--scope", "t"), "c"), (("--limit", "1"), "a")):
        done = pyidem(shop, *sweep, *options, cwd=app)
        assert json.loads(done.stdout)["completed"] == 1, done.stderr
        assert f"key='{key}'" in done.stderr


def test_of_requests_the_policy_judges_the_answer(shop: Database, app: Path) -> None:
    stick(shop, ("s", "k"))
    done = pyidem(shop, "sweep", "--resolver", "resolvers:unavailable", "--http", cwd=app)
    assert (done.returncode, counts(done.stdout)) == (0, NOTHING | {"deferred": 1})
    assert outcome(shop, "s", "k") == "lapsed"


def test_a_resolver_that_hangs_is_given_up(shop: Database, app: Path) -> None:
    stick(shop, ("s", "k"))
    command = [PYIDEM, "sweep", "--resolver", "resolvers:hang", "--timeout", "100ms"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment(shop, OWNER), cwd=app, timeout=60
    )
    assert done.returncode == 1
    assert "reason='the resolver did not end within 0.1 s'" in done.stderr
    assert outcome(shop, "s", "k") == "lapsed"


def test_a_sweeper_of_the_applications_own_has_its_own_database_and_settings(shop: Database, app: Path) -> None:
    stick(shop, ("mine", "a"), ("other", "b"))
    done = pyidem(shop, "sweep", "--resolver", "resolvers:sweeper", cwd=app)
    assert (done.returncode, counts(done.stdout)) == (0, NOTHING | {"completed": 1})
    assert outcome(shop, "mine", "a") == "completed"
    assert pyidem(shop, "sweep", "--resolver", "resolvers:sweeper", "--scope", "other", cwd=app).returncode == 2


@contextmanager
def running(database: Database, app: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [PYIDEM, "sweep", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(database, OWNER), cwd=app
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("resolver", "every"), [("slow", ("--every", "50ms")), ("slow_async", ("--every", "50ms")), ("slow", ())]
)
def test_a_signal_ends_it_after_the_key_that_it_is_at(
    number: int, resolver: str, every: tuple[str, ...], shop: Database, app: Path
) -> None:
    stick(shop, ("s", "a"), ("s", "b"))
    with running(shop, app, "--resolver", f"resolvers:{resolver}", "--json", *every) as process:
        wait_until((app / "at-work").exists, "the resolver to be at work")
        process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        (app / "go-on").touch()
        stdout, _ = process.communicate(timeout=30)
    assert (process.returncode, json.loads(stdout)) == (0, NOTHING | {"completed": 1})
    assert (outcome(shop, "s", "a"), outcome(shop, "s", "b")) == ("completed", "lapsed")


def test_a_second_signal_ends_it_at_once(shop: Database, app: Path) -> None:
    stick(shop, ("s", "a"))
    with running(shop, app, "--resolver", "resolvers:slow", "--every", "50ms") as process:
        wait_until((app / "at-work").exists, "the resolver to be at work")
        process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
    assert outcome(shop, "s", "a") == "in_progress"


def test_the_loop_picks_up_what_lapses_later(shop: Database, app: Path) -> None:
    with running(shop, app, "--resolver", "resolvers:settle_async", "--every", "50ms") as process:
        for key in ("a", "b"):
            stick(shop, ("s", key))
            wait_until(lambda key=key: outcome(shop, "s", key) == "completed", f"{key} to be settled")
        process.terminate()
        stdout, _ = process.communicate(timeout=30)
    assert (process.returncode, counts(stdout)) == (0, NOTHING | {"completed": 2})


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no_such_module:settle", "there is no module 'no_such_module'"),
        ("resolvers.sub:settle", "there is no module 'resolvers.sub'"),
        ("resolvers:nothing", "there is no 'nothing' in resolvers"),
        ("resolvers:Service.nothing", "there is no 'nothing' in resolvers"),
        ("resolvers:not_callable", "neither a function nor a sweeper"),
    ],
)
def test_a_wrong_path_is_one_line(path: str, said: str, app: Path) -> None:
    done = pyidem(None, "sweep", "--resolver", path, "--dsn", "host=127.0.0.1 port=1", cwd=app)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--resolver", "resolvers"),
        ("--resolver", "resolvers:"),
        ("--resolver", "resolvers:settle", "--every", "5"),
        ("--resolver", "resolvers:settle", "--every", "5s", "--limit", "1"),
        ("--resolver", "resolvers:settle", "--concurrency", "0"),
        ("--resolver", "resolvers:settle", "--every", "0s"),
        ("--resolver", "resolvers:settle", "--timeout", "0s"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...], app: Path) -> None:
    assert pyidem(None, "sweep", *arguments, cwd=app).returncode == 2


def test_a_resolver_role_is_enough_and_another_is_told_what_it_lacks(shop: Database, app: Path) -> None:
    role = shop.create_role("sweeper")
    stick(shop, ("s", "k"))
    refused = pyidem(shop, "sweep", "--resolver", "resolvers:settle", user=role, cwd=app)
    assert refused.returncode == 1
    assert f"select idem.grant_resolver('{role}');" in refused.stderr
    with psycopg.connect(shop.dsn, autocommit=True) as connection:
        connection.execute(f"grant insert on settled to {role}; select idem.grant_resolver('{role}')")
    assert pyidem(shop, "sweep", "--resolver", "resolvers:settle", user=role, cwd=app).returncode == 0
    assert outcome(shop, "s", "k") == "completed"

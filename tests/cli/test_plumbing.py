"""What the commands share: how they connect, what they say where they cannot, and how they print."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
import typer

from pyidem import _calls
from pyidem.cli import output
from pyidem.cli.common import Exit, ask, parse_duration
from pyidem.cli.connection import call, connected, read
from tests.cli.support import PYIDEM, environment
from tests.support.database import OWNER, Database

Said = Callable[[], str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """A function that returns what was printed on standard error."""
    return lambda: capsys.readouterr().err


def refusal(dsn: str, said: Said, *, query: str = "select from idem.keys") -> str:
    with pytest.raises(typer.Exit) as ended, connected(dsn) as connection:
        read(connection, query)
    assert ended.value.exit_code == Exit.FAILED
    message = said()
    assert message.startswith("pyidem: ")
    assert "Traceback" not in message
    return message


def test_calls_and_reads_are_each_a_transaction_of_their_own(db: Database) -> None:
    with connected(db.dsn_of(OWNER)) as connection:
        call(connection, _calls.reserve("s", "k", mode="leased"))
        with psycopg.connect(db.dsn) as other:
            assert other.execute("select outcome from idem.lookup('s', 'k')").fetchone() == ("in_progress",)
        assert read(connection, "select key from idem.keys where scope = %(scope)s", {"scope": "s"}) == [{"key": "k"}]


def test_a_server_that_does_not_answer_is_one_line(said: Said) -> None:
    message = refusal("host=127.0.0.1 port=1", said)
    assert message.startswith("pyidem: cannot connect: ")
    assert message.count("\n") == 1


@pytest.mark.parametrize("command", [["policy", "list"], ["stats", "--json"], ["sql"]])
def test_where_the_disk_is_full_that_is_one_line(command: list[str], db: Database) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [PYIDEM, *command], check=False, stdout=full, stderr=subprocess.PIPE, text=True, env=environment(db, OWNER)
        )
    assert (done.returncode, done.stderr) == (Exit.FAILED, "pyidem: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("query", ["select from idem.keys", "select idem.lookup('s', 'k')"])
def test_a_database_without_pyidem_is_named(query: str, empty_db: Database, said: Said) -> None:
    message = refusal(empty_db.dsn, said, query=query)
    assert f"not installed in database {empty_db.name}" in message
    assert "pyidem upgrade" in message


@pytest.mark.parametrize("query", ["select idem.of_tomorrow()", "select of_tomorrow from idem.keys"])
def test_a_database_with_another_version_is_told_from_one_without(query: str, db: Database, said: Said) -> None:
    assert "another version" in refusal(db.dsn, said, query=query)


def test_a_missing_right_comes_with_the_call_that_grants_it(db: Database, said: Said) -> None:
    role = db.create_role("newcomer")
    message = refusal(db.dsn_of(role), said)
    assert "SQLSTATE 42501" in message
    assert f"select idem.grant_operator('{role}');" in message


def test_the_detail_of_our_own_errors_is_for_programs(db: Database, said: Said) -> None:
    message = refusal(db.dsn, said, query="select idem.lookup('', 'k')")
    assert "SQLSTATE IK001" in message
    assert "{" not in message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("15m", 900), ("1h30m", 5400), ("7d", 604800), ("250ms", 0.25), ("1.5h", 5400), ("0s", 0)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "-5s", "5y", "5s!", "1h and 5m"])
def test_what_is_no_duration_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="no duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["9999999999d", f"{'9' * 400}s"])
def test_a_duration_that_no_clock_can_count_is_wrong_usage(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="too long"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0, "0s"), (0.02, "20ms"), (59, "59s"), (60, "1m"), (3661, "1h1m"), (90061, "1d1h")]
)
def test_lengths_of_time_are_short(seconds: float, shown: str) -> None:
    assert output.length(timedelta(seconds=seconds)) == shown
    assert seconds == 0 or output.length(timedelta(seconds=-seconds)) == f"-{shown}"


def test_a_table_has_each_row_on_one_line_however_long(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_table([{"key": "k" * 500, "at_last": None}], ["key", "at_last"])
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["key", "at", "last"]
    assert row.strip() == "k" * 500


def test_a_key_cannot_steer_the_terminal() -> None:
    assert output.cell("a\x1b[31m\n[bold]b") == r"a\x1b[31m\n[bold]b"


def test_json_is_json_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2030, 1, 2, tzinfo=UTC)
    output.write_json([{"at": at, "for": timedelta(minutes=1), "token": UUID(int=0), "text": "\x1b"}])
    assert json.loads(capsys.readouterr().out) == [
        {"at": "2030-01-02T00:00:00+00:00", "for": 60.0, "token": str(UUID(int=0)), "text": "\x1b"}
    ]


def test_where_nobody_can_be_asked_a_yes_is_wanted(said: Said) -> None:
    ask("This does something.", yes=True)
    with pytest.raises(typer.Exit) as ended:
        ask("This does something.", yes=False)
    assert ended.value.exit_code == Exit.FAILED
    assert said() == "pyidem: This does something. Give --yes to go on.\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("pyidem li", {"list"}),
        ("pyidem resolve --act", {"--action"}),
        ("pyidem resolve --action re", {"release", "retry"}),
    ],
)
def test_the_shell_can_complete(typed: str, offered: set[str]) -> None:
    words = {"_PYIDEM_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run([PYIDEM], check=False, capture_output=True, text=True, env=os.environ | words)
    assert set(done.stdout.split()) == offered

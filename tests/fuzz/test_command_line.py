"""Whatever is typed, the commands end with an exit code and a message, never with a traceback."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from pyidem.cli import app as cli
from tests.support.database import Database

COMMANDS = {
    "list": ["--state", "--scope", "--policy", "--older-than"],
    "show": [],
    "resolve": ["--scope", "--policy", "--older-than", "--reason", "--action", "--dry-run"],
    "policy": ["list", "show", "set", "delete"],
    "stats": [],
    "purge": ["--max-rows", "--max-time"],
    "doctor": ["--round-trip"],
}
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["", "-", "--", "1h", "-1h", "1e999", "99999999999d", "x=1", "ttl=", "lease=-1s", "on_lapse=maybe", "[red]", "%s"]
)  # fmt: skip
EXIT_CODES = {0, 1, 2, 3}


@pytest.fixture
def at_home(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in db.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("at_home")
def test_arguments(command: str) -> None:
    @settings(
        max_examples=int(os.environ.get("PYIDEM_FUZZ_EXAMPLES", "10")),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(arguments=st.lists(words | st.sampled_from(COMMANDS[command] or [""]), max_size=5), as_json=st.booleans())
    def attempt(arguments: list[str], as_json: bool) -> None:
        done = CliRunner().invoke(cli.app, [command, *["--json"] * as_json, *arguments])
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
        assert done.exit_code in EXIT_CODES
        assert "Traceback" not in done.output

    attempt()

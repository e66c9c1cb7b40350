"""Every call of the API in the documentation is made, by a shell and curl, and has to be answered as printed."""

import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.docs.blocks import README, fences
from tests.docs.shell import Shell, open_shell, replay
from tests.support.api import served

PRINTED = "http://127.0.0.1:8000"
BLOCKS = [block for block in fences(README, "console") if block.options == ("http",)]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the API of `make demo ARGS=--serve` is reached."""
    with served() as url:
        yield url


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with open_shell(tmp_path) as shell:
        shell.run("uuidgen() { cat /proc/sys/kernel/random/uuid; }")  # not every system has it
        yield shell


def test_calls_are_answered_as_printed(url: str, shell: Shell) -> None:
    for block in BLOCKS:
        expected = lines(block.text)
        actual = lines(replay(block.text.replace(PRINTED, url), shell).replace(url, PRINTED))
        assert expected == actual, "\n".join(unified_diff(expected, actual, block.place, "curl", lineterm=""))


def test_every_outcome_is_shown() -> None:
    shown = "\n".join(block.text for block in BLOCKS)
    answers = re.findall(r"^HTTP/1.1 (\d+)", shown, re.MULTILINE)
    codes = set(re.findall(r'"code": "(\w+)"', shown))

    assert set(answers) == {"201", "400", "409", "410", "422"}
    assert codes == {
        "idempotency_key_expired",
        "idempotency_key_invalid",
        "idempotency_key_missing",
        "idempotency_key_reused",
        "idempotency_request_in_progress",
    }
    assert "idempotency-replayed: true" in shown


def lines(text: str) -> list[str]:
    """Return the lines without blanks, and what else a terminal does not show, at their ends.

    Newer versions of Python call the same status by another name.
    """
    return [line.rstrip().replace("Unprocessable Content", "Unprocessable Entity") for line in text.splitlines()]

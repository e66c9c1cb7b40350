"""Every psql session in the documentation is typed into a real psql, and has to look exactly as printed.

Two things may differ: blanks at the end of a line, and which UUID it is, as long as the same ones are the same.
A block of language psql belongs to the session that its second word names: `owner` is the owner's, others are the
application's, and a session that is opened later knows the key of the first.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from difflib import unified_diff
from pathlib import Path

import pytest

from tests.docs.blocks import README, REFERENCE, fences
from tests.docs.terminal import Terminal, open_terminal, replay
from tests.support.database import OWNER, Database

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Sessions:
    """The psql sessions of one document."""

    def __init__(self, shop: Database, cleanup: ExitStack) -> None:
        self._shop = shop
        self._cleanup = cleanup
        self._open: dict[str, Terminal] = {}

    def get(self, name: str) -> Terminal:
        """Return a session, opened when it is first asked for."""
        if name not in self._open:
            dsn = self._shop.dsn_of(OWNER if name == "owner" else "app")
            self._open[name] = self._cleanup.enter_context(open_terminal(self._shop.cluster, dsn))
            if "first" in self._open and name != "first":
                key = self._open["first"].type(r"\echo :key").splitlines()[-1]
                self._open[name].type(rf"\set key {key}")
        return self._open[name]


@pytest.fixture
def sessions(shop: Database) -> Iterator[Sessions]:
    with ExitStack() as cleanup:
        yield Sessions(shop, cleanup)


@pytest.mark.parametrize("document", [README, REFERENCE], ids=["readme", "reference"])
def test_sessions_look_as_printed(document: Path, sessions: Sessions) -> None:
    printed: dict[str, int] = {}
    shown: dict[str, int] = {}
    blocks = fences(document, "psql")
    assert blocks
    for block in blocks:
        name = block.options[0] if block.options else "first"
        expected = normalised(block.text, printed)
        actual = normalised(replay(block.text, sessions.get(name)), shown)
        assert expected == actual, "\n".join(unified_diff(expected, actual, block.place, "psql", lineterm=""))


def normalised(text: str, known: dict[str, int]) -> list[str]:
    """Return the lines without blanks at their ends, and UUIDs numbered by when they were first seen."""

    def number(found: re.Match[str]) -> str:
        return f"<uuid {known.setdefault(found[0], len(known) + 1):031}>"

    return [_UUID.sub(number, line.rstrip()) for line in text.splitlines()]

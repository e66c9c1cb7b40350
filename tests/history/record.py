"""The history of a client: one line for each call that it begins and one for how that ended.

A line is handed to the kernel before the call goes on, so that what a client did survives its kill. The times are those
of the machine's monotonic clock, which all processes share.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

OK = "ok"
FAIL = "fail"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Call:
    """One call, or one transaction, of a client.

    ``given`` is what it went in with, ``ended`` how: `OK` with an ``answer``, `FAIL` (it certainly had no effect, and
    ``answer`` says why), or `UNKNOWN`: the connection was lost, or the client killed, before anybody told it.
    """

    op: str
    name: str
    began: int
    ended_at: int
    ended: str
    given: dict[str, Any]
    answer: dict[str, Any]

    @property
    def key(self) -> str:
        """The key that it was about."""
        return str(self.given["key"])


class Recorder:
    """Writes the history of one client."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._number = 0

    def begin(self, op: str, name: str, **given: Any) -> int:
        """Note that a call begins, and return its number."""
        self._number += 1
        self._write({"n": self._number, "op": op, "name": name, "at": time.monotonic_ns(), "given": given})
        return self._number

    def end(self, number: int, ended: str, **answer: Any) -> None:
        """Note how it ended."""
        self._write({"n": number, "at": time.monotonic_ns(), "ended": ended, "answer": answer})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())


@dataclass(frozen=True)
class History:
    """What all clients did, in the order in which the calls began."""

    calls: list[Call]

    @classmethod
    def read(cls, files: Iterable[Path]) -> Self:
        """Read the files that recorders have written. A last line may be cut off."""
        calls = [call for file in files for call in _calls_of(file)]
        return cls(sorted(calls, key=lambda call: call.began))


def _calls_of(file: Path) -> Iterator[Call]:
    open_calls: dict[int, dict[str, Any]] = {}
    lines = file.read_text().split("\n")
    for text in lines[:-1]:
        line = json.loads(text)
        if "ended" not in line:
            open_calls[line["n"]] = line
            continue
        began = open_calls.pop(line["n"])
        yield Call(began["op"], began["name"], began["at"], line["at"], line["ended"], began["given"], line["answer"])
    for began in open_calls.values():
        yield Call(began["op"], began["name"], began["at"], _NEVER, UNKNOWN, began["given"], {})


_NEVER = 2**63

"""psql as a reader sees it: interactive, on a terminal, with its prompts."""

import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyidem.embedded import Cluster

_PROMPT = re.compile(r"^shop\S{1,2}[>#] ")
_OPEN, _CLOSE = "\x01", "\x02"
_SECONDS = 30
_OUTPUT_FLAGS, _LOCAL_FLAGS = 1, 3


class Terminal:
    """An interactive psql that calls its database shop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        _, self._prompt = self._read()

    def type(self, line: str) -> str:
        """Enter a line; return what the screen shows of it: the prompt, the line and its output."""
        shown = f"{self._prompt}{line}\n"
        os.write(self._descriptor, f"{line}\n".encode())
        output, self._prompt = self._read()
        return shown + output

    def _read(self) -> tuple[str, str]:
        """Return the output up to the next prompt, and that prompt: it stands between two bytes of its own."""
        received = b""
        deadline = time.monotonic() + _SECONDS
        while not received.endswith(_CLOSE.encode()):
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"psql did not come back within {_SECONDS} s; it printed {received.decode()!r}"
            received += os.read(self._descriptor, 65536)
        output, _, prompt = received.decode().removesuffix(_CLOSE).rpartition(_OPEN)
        return output, prompt


def replay(transcript: str, terminal: Terminal) -> str:
    """Enter the lines of a transcript that follow a prompt; return the transcript as it came out."""
    typed = [line for line in transcript.splitlines() if _PROMPT.match(line)]
    return "".join(terminal.type(_PROMPT.sub("", line)) for line in typed)


@contextmanager
def open_terminal(cluster: Cluster, dsn: str) -> Iterator[Terminal]:
    """Start psql without settings of the user's own."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[_OUTPUT_FLAGS] &= ~termios.OPOST
    attributes[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    settings = ["PROMPT1=%001shop%R%x%# %002", "PROMPT2=%001shop%R%x%# %002", "SHOW_CONTEXT=never"]
    process = subprocess.Popen(
        [
            cluster.bindir / "psql",
            *("--no-psqlrc", "--no-readline", "--pset=pager=off", f"--dbname={dsn}"),
            *(f"--set={setting}" for setting in settings),
        ],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"PGTZ": "UTC", "LC_ALL": "C"},
    )
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)

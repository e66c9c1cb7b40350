"""A shell as a reader uses it: one command after another, each with what it prints."""

import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PROMPT, CONTINUED = "$ ", "> "
_END = "\x01"
_SECONDS = 30


class Shell:
    """A running bash."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def run(self, command: str) -> str:
        """Run a command; return what it printed."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\nprintf '\\001'\n".encode())
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        received = b""
        deadline = time.monotonic() + _SECONDS
        while not received.endswith(_END.encode()):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the shell did not come back within {_SECONDS} s; it printed {received.decode()!r}"
            chunk = os.read(self._process.stdout.fileno(), 65536)
            assert chunk, f"the shell has ended; it printed {received.decode()!r}"
            received += chunk
        return received.decode().removesuffix(_END)


@contextmanager
def open_shell(directory: Path, environment: Mapping[str, str] | None = None) -> Iterator[Shell]:
    """Start a bash without settings of the user's own."""
    with subprocess.Popen(
        ["bash", "--noprofile", "--norc"],
        cwd=directory,
        env=os.environ | (environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            yield Shell(process)
        finally:
            process.kill()


def replay(transcript: str, shell: Shell) -> str:
    """Run the commands of a transcript; return it as it came out."""
    shown = []
    for typed in _commands(transcript.splitlines()):
        shown.append(typed)
        shown.append(shell.run("\n".join(line[len(PROMPT) :] for line in typed.splitlines())))
    return "".join(shown)


def _commands(lines: list[str]) -> list[str]:
    """Return the lines that were typed, those that go on after the first together with it."""
    commands: list[str] = []
    for line in lines:
        if line.startswith(PROMPT):
            commands.append(f"{line}\n")
        elif line.startswith(CONTINUED):
            commands[-1] += f"{line}\n"
    return commands

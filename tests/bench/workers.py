"""Processes that do operations from Python: two of them, as pgbench has two threads, so that one interpreter's lock is
not what is measured."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

PROCESSES = 2


class WorkerFailed(RuntimeError):
    """A candidate cannot be measured; the message says why."""


class Workers:
    """Two processes that wait for orders."""

    def __init__(self, command: list[str | Path], dsn: str, stack: ExitStack) -> None:
        # not a pipe, which would fill up where nobody reads it
        self._said = stack.enter_context(TemporaryFile("w+"))  # noqa: SIM115 - the stack closes it
        self._processes = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
                )
            )
            for _ in range(PROCESSES)
        ]
        stack.callback(self._end)

    def speed(self, candidate: str, clients: int, seconds: float) -> dict[str, float]:
        """Operations per second of some clients, and their latencies."""
        share, rest = divmod(clients, PROCESSES)
        shares = [share + (number < rest) for number in range(PROCESSES)]
        at_work = [(process, mine) for process, mine in zip(self._processes, shares, strict=True) if mine]
        for process, mine in at_work:
            assert process.stdin is not None
            order: dict[str, Any] = {"candidate": candidate, "clients": mine, "seconds": seconds}
            try:
                process.stdin.write(json.dumps(order) + "\n")
                process.stdin.flush()
            except BrokenPipeError:  # it has ended already: its answer is none, and says why
                with suppress(BrokenPipeError):
                    process.stdin.close()
        answers = [self._answer(process) for process, _ in at_work]
        return {
            "speed": sum(answer["speed"] for answer in answers),
            "p50": max(answer["p50"] for answer in answers),
            "p99": max(answer["p99"] for answer in answers),
        }

    def _answer(self, process: "subprocess.Popen[str]") -> dict[str, float]:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait()
            self._said.seek(0)
            said = [line for line in self._said.read().splitlines() if "Error" in line or "failed" in line]
            raise WorkerFailed(said[-1].strip() if said else f"it ended with {process.returncode}")
        answer: dict[str, float] = json.loads(line)
        return answer

    def _end(self) -> None:
        for process in self._processes:
            if process.poll() is None and process.stdin is not None:
                process.stdin.close()


@contextmanager
def workers(command: list[str | Path], dsn: str) -> Iterator[Workers]:
    """Start processes by a command."""
    with ExitStack() as stack:
        yield Workers(command, dsn, stack)


@contextmanager
def python_workers(dsn: str, python: Path | None = None) -> Iterator[Workers]:
    """Start processes of a Python."""
    with workers([python or sys.executable, "-m", "tests.bench.worker"], dsn) as started:
        yield started

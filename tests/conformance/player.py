"""A language at play: its program, asked over the line protocol."""

import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from tests.conformance.languages import Language

PATIENCE_SECONDS = 60


class Silence(Exception):
    """The program has ended, or does not answer; the text has what it wrote to standard error."""


class Player:
    """The running program of a language. It ends with the `with` block, or with `kill`.

    It is asked by one thread at a time.
    """

    def __init__(self, language: Language, database: Mapping[str, str], log: Path) -> None:
        self.language = language
        self._log = log
        self._answers: queue.Queue[bytes] = queue.Queue()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                language.command,
                cwd=language.folder,
                env=environment | dict(database) | language.settings,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(PATIENCE_SECONDS)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.kill()
        self._reader.join()
        self._process.stdout.close()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._silence(f"has ended with status {self._process.wait()}", request) from None
        try:
            line = self._answers.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            raise self._silence(f"has not answered for {PATIENCE_SECONDS} s", request) from None
        if not line:
            raise self._silence(f"has ended with status {self._process.wait()}", request)
        answer = json.loads(line)
        assert isinstance(answer, dict), f"{self.language.name} answered with {line[:200]!r}, which is no object"
        return answer

    def do(self, **request: Any) -> dict[str, Any]:
        """Send a request that must not fail and return the answer."""
        answer = self.ask(**request)
        assert "error" not in answer, f"{self.language.name} answered {request} with {answer}"
        return answer

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def _silence(self, what: str, request: Mapping[str, Any]) -> Silence:
        said = self._log.read_text(errors="replace")[-4000:]
        return Silence(f"{self.language.name} {what}, asked {str(request)[:500]}:\n{said}")

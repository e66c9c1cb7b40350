"""Clients that can be killed: one child process for each job that comes in as a line of JSON.

Nothing has been connected and no thread is running when a child is forked, so that costs little.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

import psycopg

from tests.recovery.protocol import PROTOCOLS, Client, Death
from tests.support.database import ROOT


class Workers:
    """The process that makes clients, seen from the tests."""

    def __enter__(self) -> Self:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._process.communicate()

    def run(self, protocol: str, death: Death, *, shop: str, provider: str, clock: str = "0", **arguments: Any) -> str:
        """Run a protocol in a process of its own and return how it ended: what it did, or `killed`, or `lost`."""
        job = {
            "protocol": protocol,
            "death": asdict(death),
            "shop": shop,
            "provider": provider,
            "clock": clock,
            "arguments": arguments,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return str(json.loads(self._process.stdout.readline()))


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "w") as end:
                end.write(work(job))
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as end:
            told = end.read()
        _, status = os.waitpid(child, 0)
        print(json.dumps("killed" if os.WIFSIGNALED(status) else told), flush=True)


def work(job: dict[str, Any]) -> str:
    client = Client(job["shop"], job["provider"], clock=job["clock"], death=Death(**job["death"]))
    try:
        return client.run(PROTOCOLS[job["protocol"]](**job["arguments"]))
    except psycopg.OperationalError:
        return "lost"


if __name__ == "__main__":
    main()

"""Child processes that are started again when they are killed, and that never outlive their parent.

The parent opens the socket that a child listens on and keeps it open: connections that arrive while a killed child is
being replaced wait for the next one. A child ends when its standard input does, so also when the parent is killed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from socket import create_server, socket
from typing import Any, Self

from pyidem.demo.wire import Server

_STOP_SECONDS = 10


class ChildFailed(RuntimeError):
    """A child process ended, and not because it was killed; the message ends with what it wrote."""


class Child:
    """A module run as a process, started again whenever it is killed.

    Attributes:
        port: where it listens, on 127.0.0.1.
        deaths: how often it was killed.
    """

    def __init__(self, module: str, log: Path, **settings: Any) -> None:
        self.deaths = 0
        self._module = module
        self._log = log
        self._settings = settings
        self._listener = create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._stopping = False
        self._process = self._spawn()
        self._watcher = threading.Thread(target=self._watch, name=f"watch-{module}", daemon=True)
        self._watcher.start()

    def check(self) -> None:
        """Raise ChildFailed unless it is at work."""
        if not self._watcher.is_alive() and not self._stopping:
            raise ChildFailed(
                f"{self._module} ended with status {self._process.returncode}:\n{self._log.read_text()[-4000:]}"
            )

    def kill(self) -> None:
        """Kill -9."""
        self._process.kill()

    def stop(self) -> None:
        """End it for good."""
        with self._lock:
            self._stopping = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._watcher.join()
        self._listener.close()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[self._listener.fileno()],
                start_new_session=True,  # Ctrl-C in a terminal is the parent's to handle
            )
        assert process.stdin is not None
        # Not on the command line, which everybody on the machine may read.
        process.stdin.write(json.dumps({"listener": self._listener.fileno(), **self._settings}).encode() + b"\n")
        process.stdin.flush()
        return process

    def _watch(self) -> None:
        while True:
            status = self._process.wait()
            with self._lock:
                if self._stopping or status != -signal.SIGKILL:
                    return
                self.deaths += 1
                assert self._process.stdin is not None
                self._process.stdin.close()
                self._process = self._spawn()


class Assassin:
    """Kills one of several children every now and then, at moments that nobody has chosen."""

    def __init__(self, children: list[Child], every: float, rng: Random) -> None:
        self._children = children
        self._every = every
        self._rng = rng
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="assassin", daemon=True)

    def __enter__(self) -> Self:
        """Begin, unless `every` is zero."""
        if self._every > 0:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()
        if self._every > 0:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._rng.expovariate(1 / self._every)):
            self._rng.choice(self._children).kill()


def serve(make_server: Callable[..., Server]) -> None:
    """Be a child: make the server with the settings from standard input and serve until that ends."""
    settings = json.loads(sys.stdin.buffer.readline())
    listener = socket(fileno=settings.pop("listener"))
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    make_server(listener, **settings).serve_forever()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)

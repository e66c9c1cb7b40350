"""Child processes that are started again when they are killed, and that never outlive their parent.

The parent opens the socket that a child listens on and keeps it open: connections that arrive while a killed child is
being replaced wait for the next one. A child ends when its end of a pipe says that the parent has closed the other, so
also when the parent is killed. Children are forked from a process that has everything imported, which makes a
replacement quick.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from socket import create_server, socket
from typing import Any, Self

import uvicorn

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["pyidem.demo.worker", "pyidem.demo.provider"])
# Whoever starts a process, or asks for an exit code, makes the library look after all the others as well, and two of
# them at the same time would take the answer away from each other.
_LIBRARY = threading.Lock()
_STOP_SECONDS = 10


class ChildFailed(RuntimeError):
    """A child process ended, and not because it was killed; the message ends with what it wrote."""


class Child:
    """An ASGI application served by a process of its own, which is started again whenever it is killed.

    Args:
        make_app: a function on the top level of a module; it gets the settings.
        log: the file that what it prints is appended to.

    Attributes:
        port: where it listens, on 127.0.0.1.
        deaths: how often it was killed.
    """

    def __init__(self, make_app: Callable[..., Any], log: Path, **settings: Any) -> None:
        self.deaths = 0
        self._make_app = make_app
        self._log = log
        self._settings = settings
        self._listener = create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._stopping = False
        self._process, self._lifeline = self._start()
        self._watcher = threading.Thread(target=self._watch, name=f"watch-{self.port}", daemon=True)
        self._watcher.start()

    def check(self) -> None:
        """Raise ChildFailed unless it is at work."""
        if not self._watcher.is_alive() and not self._stopping:
            raise ChildFailed(f"{self._make_app.__module__} ended by itself:\n{self._log.read_text()[-4000:]}")

    def kill(self) -> None:
        """Kill -9."""
        self._process.kill()

    def stop(self) -> None:
        """End it for good."""
        with self._lock:
            self._stopping = True
        self._lifeline.close()
        wait([self._process.sentinel], _STOP_SECONDS)
        self._process.kill()
        self._watcher.join()
        self._listener.close()

    def _start(self) -> tuple[Any, Connection]:
        reader, writer = _CONTEXT.Pipe(duplex=False)
        with reader:
            arguments = (self._make_app, self._settings, self._listener, reader, self._log)
            process = _CONTEXT.Process(target=_serve, args=arguments, daemon=True)
            with _LIBRARY:
                process.start()
        return process, writer

    def _watch(self) -> None:
        while True:
            wait([self._process.sentinel])
            with _LIBRARY:
                killed = self._process.exitcode == -signal.SIGKILL
            with self._lock:
                if self._stopping or not killed:
                    return
                self.deaths += 1
                self._lifeline.close()
                self._process, self._lifeline = self._start()


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


def _serve(
    make_app: Callable[..., Any], settings: dict[str, Any], listener: socket, lifeline: Connection, log: Path
) -> None:
    """Be a child, until the parent ends."""
    os.setsid()  # Ctrl-C in a terminal is the parent's to handle
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    threading.Thread(target=_end_with_parent, args=(lifeline,), name="parent", daemon=True).start()
    config = uvicorn.Config(
        make_app(**settings), access_log=False, date_header=False, log_level="error", server_header=False
    )
    uvicorn.Server(config).run(sockets=[listener])


def _end_with_parent(lifeline: Connection) -> None:
    lifeline.poll(None)
    os._exit(0)

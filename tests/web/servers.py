"""Real HTTP servers for the tests. Each ends with the block that started it, or with the test process."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.database import ROOT
from tests.support.waiting import wait_until

_START_SECONDS = 120
_STOP_SECONDS = 60


@contextmanager
def uvicorn(app: str, log: Path, *, workers: int = 1, **environment: str) -> Iterator[str]:
    """Serve an ASGI application, and return its address."""
    port = free_port()
    command = [
        *("-m", "uvicorn", app, "--host", "127.0.0.1", "--port", str(port)),
        *("--workers", str(workers), "--log-level", "info", "--timeout-graceful-shutdown", "5"),
    ]
    with _serving(command, port, log, environment):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def gunicorn(app: str, log: Path, *, workers: int = 1, threads: int = 16, **environment: str) -> Iterator[str]:
    """Serve a WSGI application, and return its address."""
    port = free_port()
    command = [
        *("-m", "gunicorn", app, "--bind", f"127.0.0.1:{port}", "--workers", str(workers)),
        *("--worker-class", "gthread", "--threads", str(threads), "--graceful-timeout", "5"),
    ]
    with _serving(command, port, log, environment):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def _serving(command: list[str], port: int, log: Path, environment: dict[str, str]) -> Iterator[None]:
    # the launcher has the kernel interrupt the server when this process is gone
    launcher = ["-m", "pyidem._launch", str(os.getpid()), str(os.getuid()), str(os.getgid()), sys.executable]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, *launcher, *command],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until(lambda: _answers(server, port, log), f"a server on port {port}", timeout=_START_SECONDS)
        yield
    finally:
        server.terminate()
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise AssertionError(f"the server did not stop:\n{log.read_text()[-4000:]}") from None


def _answers(server: "subprocess.Popen[bytes]", port: int, log: Path) -> bool:
    if server.poll() is not None:
        raise AssertionError(f"the server ended with status {server.returncode}:\n{log.read_text()[-4000:]}")
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0

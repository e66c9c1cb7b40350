"""Throwaway servers: they start anywhere, keep to themselves and leave nothing behind."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pyidem import embedded
from pyidem.embedded import Cluster, ClusterError, embedded_bindir
from tests.support.database import ROOT
from tests.support.waiting import wait_until

FAST = {"fsync": "off", "shared_buffers": "16MB"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(embedded_bindir(), settings=FAST | {"application_name": "it's set"}) as cluster:
        yield cluster


@pytest.fixture
def spacious() -> Iterator[Path]:
    """A temporary directory with a space in its path that every user can enter."""
    with tempfile.TemporaryDirectory(prefix="with a space ", dir="/tmp") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


def value(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def is_running(pid: int) -> bool:
    """Tell whether a process runs; one that has ended but was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_settings_are_taken_literally(cluster: Cluster) -> None:
    assert value(cluster.dsn(), "select reset_val from pg_settings where name = 'application_name'") == "it's set"


def test_it_listens_on_loopback_only(cluster: Cluster) -> None:
    shown = "select current_setting('listen_addresses') || current_setting('unix_socket_directories')"
    assert value(cluster.dsn(), shown) == "127.0.0.1"


def test_nobody_gets_in_without_the_password(cluster: Cluster) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(cluster.dsn(), password="a guess")


def test_a_server_does_not_run_as_root(cluster: Cluster) -> None:
    assert Path(f"/proc/{cluster.pid}").stat().st_uid != 0


def test_stopping_ends_the_process_and_removes_the_directory() -> None:
    cluster = Cluster(embedded_bindir(), settings=FAST)
    cluster.start()
    pid, directory = cluster.pid, cluster.directory
    cluster.stop()
    assert not is_running(pid)
    assert not directory.exists()
    cluster.stop()  # once more is harmless


def test_an_immediate_restart_recovers_what_was_committed_on_the_same_port(cluster: Cluster) -> None:
    port = cluster.port
    with psycopg.connect(cluster.dsn()) as connection:
        connection.execute("create table kept as select 1 as one")
    logged = len(cluster.log())
    cluster.restart("immediate")
    assert cluster.port == port
    assert value(cluster.dsn(), "select one from kept") == 1
    assert "automatic recovery in progress" in cluster.log()[logged:]


def test_a_port_that_somebody_else_takes_first_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as quicker:
        taken = quicker.getsockname()[1]
        ports = iter([taken, embedded._free_port()])
        monkeypatch.setattr(embedded, "_free_port", lambda: next(ports))
        with Cluster(embedded_bindir(), settings=FAST) as cluster:
            assert cluster.port != taken
            assert value(cluster.dsn(), "select 1") == 1


def test_a_server_that_cannot_start_says_why_and_leaves_no_directory(
    spacious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(spacious))
    with pytest.raises(ClusterError, match='invalid value for parameter "wal_level": "none"'):
        Cluster(embedded_bindir(), settings=FAST | {"wal_level": "none"}).start()
    assert list(spacious.iterdir()) == []


def test_binaries_that_the_server_user_cannot_reach_are_copied(tmp_path: Path) -> None:
    """As root, tmp_path is closed to the user that the server runs as; otherwise there is nothing to copy."""
    package = embedded_bindir().parents[1]
    for folder in package, package.with_name(f"{package.name}.libs"):
        shutil.copytree(folder, tmp_path / "site packages" / folder.name, symlinks=True)
    bindir = tmp_path / "site packages" / embedded_bindir().relative_to(package.parent)
    with Cluster(bindir, settings=FAST) as cluster:
        assert value(cluster.dsn(), "select 1") == 1
        assert (cluster.bindir != bindir) == (os.geteuid() == 0)


def test_it_works_without_a_locale_in_a_path_with_a_space(spacious: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("LC_", "LANG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(tempfile, "tempdir", str(spacious))
    with Cluster(embedded_bindir(), settings=FAST) as cluster:
        assert cluster.directory.parent == spacious
        assert value(cluster.dsn(), "select current_setting('server_encoding')") == "UTF8"
        assert value(cluster.dsn(), "select datcollate from pg_database where datname = 'template1'") == "C"


PARENT = """
import signal
from pyidem.embedded import Cluster, embedded_bindir

with Cluster(embedded_bindir()) as cluster:
    print(cluster.pid, cluster.directory, flush=True)
    signal.pause()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_a_server_whose_parent_is_killed_shuts_itself_down_cleanly() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, _, directory = parent.stdout.readline().strip().partition(" ")
        assert is_running(int(pid))
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_running(int(pid)), "the server to end")
    log = (Path(directory) / "server.log").read_text()
    shutil.rmtree(directory)
    assert "received fast shutdown request" in log
    assert "database system is shut down" in log

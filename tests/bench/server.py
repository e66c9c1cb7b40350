"""The throwaway server that is measured, and what is read from it."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from pyidem.embedded import Cluster
from tests.support.database import ROOT, run_psql
from tests.support.server import find_server

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
SETTINGS = {
    # a quarter of the memory, which PostgreSQL's documentation calls a reasonable value to start with
    "shared_buffers": f"{MEMORY // 4 >> 20}MB", "max_wal_size": "4GB", "checkpoint_timeout": "1h",
    "max_connections": "600", "wal_level": "minimal", "max_wal_senders": "0",
}  # fmt: skip
# It takes a while until so many have begun.
MANY, MANY_SECONDS = 64, 2
TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """A server, and pgbench against its databases."""

    def __init__(self, cluster: Cluster, major: str) -> None:
        self.cluster = cluster
        self.major = major
        self.dsn = cluster.dsn("postgres")

    def install(self, database: str = "postgres", *, setup: bool = True) -> str:
        """Install pyidem and what the scripts work on in a database, made where it is not there; return its DSN."""
        dsn = self.cluster.dsn(database)
        if database != "postgres":
            self.execute(f"create database {database}")
        run_psql(self.cluster, dsn, ROOT / "sql" / "install.sql")
        if setup:
            run_psql(self.cluster, dsn, HERE / "setup.sql")
        return dsn

    def execute(self, statement: str, *, dsn: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement as the superuser and return its rows."""
        with psycopg.connect(dsn or self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def pgbench(self, script: str, *arguments: str, dsn: str | None = None) -> str:
        """Run one script and return what pgbench printed."""
        done = subprocess.run(
            [*self._command(script), *arguments, dsn or self.dsn], check=False, capture_output=True, text=True
        )
        if done.returncode or "aborted" in done.stderr:
            raise SystemExit(f"pgbench -f {script}.sql failed:\n{done.stderr}")
        return done.stdout

    def speed(
        self, script: str, clients: int, seconds: float, *, dsn: str | None = None, define: dict[str, str] | None = None
    ) -> float:
        """Transactions per second of some clients."""
        defined = [part for name, value in (define or {}).items() for part in ("-D", f"{name}={value}")]
        threads = str(min(clients, 2))
        length = max(MANY_SECONDS if clients >= MANY else 1, round(seconds))
        found = None
        while found is None:  # none has ended where the machine is very busy
            printed = self.pgbench(script, "-c", str(clients), "-j", threads, "-T", str(length), *defined, dsn=dsn)
            found = re.search(r"^tps = ([\d.]+)", printed, re.MULTILINE)
            length *= 2
        return float(found[1])

    def wal_bytes(self, work: Callable[[], object]) -> int:
        """Bytes of WAL that some work writes."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            before = connection.execute("select pg_current_wal_insert_lsn()").fetchone()
            work()
            after = connection.execute("select pg_current_wal_insert_lsn() - %s::pg_lsn", before).fetchone()
        assert after is not None
        return int(after[0])

    def processor_seconds(self, work: Callable[[], object]) -> float:
        """Processor time that the server spends on some work whose sessions end with it."""
        before = self._ended_children()
        work()
        return (self._ended_children() - before) / TICK

    def _ended_children(self) -> int:
        fields = Path(f"/proc/{self.cluster.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[13]) + int(fields[14])

    def _command(self, script: str) -> list[str | Path]:
        return [
            self.cluster.bindir / "pgbench", "--no-vacuum", "--protocol=prepared", "-f", SCRIPTS / f"{script}.sql",
        ]  # fmt: skip


@contextmanager
def running(settings: dict[str, str]) -> Iterator[Server]:
    """Run a server with these settings beside the usual ones."""
    installation = find_server()
    if installation is None:
        raise SystemExit("no PostgreSQL server found: run `make test` once, which installs one or says how")
    with Cluster(installation.bindir, settings=SETTINGS | settings) as cluster:
        server = Server(cluster, str(installation.major))
        # what a password costs is not measured
        (cluster.directory / "data" / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n")
        server.execute("select pg_reload_conf()")
        server.install()
        yield server


def machine(server: Server) -> dict[str, str]:
    """Describe what was measured on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    release = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    cores = len(os.sched_getaffinity(0))
    version = server.execute("show server_version")[0][0].split()[0]
    return {
        "processor": f"{cores} cores of {model[1] if model else os.uname().machine}",
        "memory": f"{int(memory[1]) / 2**20:.0f} GiB" if memory else "unknown",
        "system": release[1] if release else os.uname().sysname,
        "server": f"PostgreSQL {version}",
        "settings": json.dumps(SETTINGS),
    }

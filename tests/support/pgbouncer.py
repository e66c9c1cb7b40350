"""A PgBouncer in transaction mode in front of a database."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.support.server import find_program
from tests.support.waiting import wait_until


@contextmanager
def pgbouncer(target: str, directory: Path, *, connections: int, clients: int = 100) -> Iterator[str]:
    """Run one that leads to a connection string with so many server connections; yield its own connection string."""
    program = find_program("pgbouncer")
    assert program is not None, "the fixture `installation` has checked that it is there"
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    configuration, output = directory / "pgbouncer.ini", directory / "pgbouncer.log"
    configuration.write_text(
        f"[databases]\napp = {target}\n"
        "[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\nauth_type = any\n"
        f"listen_port = {port}\n"
        f"pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = {clients}\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    with configuration.open() as config, output.open("w") as log:
        process = subprocess.Popen([program, "/dev/stdin"], stdin=config, stdout=log, stderr=log, **account)
    dsn = f"host=127.0.0.1 port={port} dbname=app user=anybody"
    try:
        wait_until(lambda: process.poll() is not None or _answers(dsn), "pgbouncer to listen")
        assert process.poll() is None, output.read_text()
        yield dsn
    finally:
        process.terminate()
        process.wait()


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True

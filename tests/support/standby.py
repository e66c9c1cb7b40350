"""A server that follows another one, and can take its place."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psycopg

from pyidem.embedded import Cluster


class Standby(Cluster):
    """A copy of a running server that follows it."""

    def __init__(self, bindir: Path, primary: Cluster, settings: Mapping[str, str]) -> None:
        super().__init__(bindir, settings=settings)
        self._primary = primary
        self.password = primary.password  # type: ignore[misc]

    def promote(self) -> None:
        """Make it a server that can be written to; return when it is."""
        with psycopg.connect(self.dsn(), autocommit=True) as admin:
            assert admin.execute("select pg_promote()").fetchone() == (True,)

    def _initdb(self) -> None:
        backup: list[str | Path] = [
            self.bindir / "pg_basebackup",
            "-d",
            self._primary.dsn(),
            "-D",
            self._data,
            "-R",
            "-c",
            "fast",
        ]
        subprocess.run(
            self._account.command(*backup, "--no-sync"),
            cwd=self.directory,
            env=os.environ | {"PGPASSWORD": self._primary.password},
            check=True,
            capture_output=True,
        )

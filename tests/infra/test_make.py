"""The Makefile explains itself and what it lacks. Each test runs it in an empty checkout in a path with a space."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.database import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    directory = tmp_path / "a check out"
    directory.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    return directory


def make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=checkout, check=False, capture_output=True, text=True
    )


def test_without_a_target_it_lists_every_target(checkout: Path) -> None:
    done = make(checkout)
    assert done.returncode == 0, done.stderr
    shown = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    declared = next(line for line in (checkout / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    assert shown == set(declared.removeprefix(".PHONY:").split())


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("exit 1", "pyidem needs Python 3.11 or newer"),
        ('case "$2" in *ensurepip*) exit 1 ;; esac', "apt-get install python3-venv"),
    ],
    ids=["too old", "without venv"],
)
@pytest.mark.parametrize("target", ["demo", "test"])
def test_a_python_that_does_not_do_is_named_with_what_is_missing(
    target: str, python: str, message: str, checkout: Path
) -> None:
    program = checkout / "the python"
    program.write_text(f"#!/bin/sh\n{python}\n")
    program.chmod(0o755)
    done = make(checkout, target, "PYTHON=./the python")
    assert done.returncode != 0
    assert message in done.stderr
    assert "./the python" in done.stderr
    assert not (checkout / ".venv").exists()

"""Every spec in isolation/, run by Postgres' own isolationtester against its reviewed transcript.

A spec drives several sessions step by step; the transcript in isolation/expected shows what each step answered and
which steps waited.
"""

import difflib
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.database import Database
from tests.support.server import Server

SPECS = Path(__file__).parent / "isolation"


@pytest.mark.parametrize("spec", sorted(SPECS.glob("*.spec")), ids=lambda path: path.stem)
def test_isolation(spec: Path, installation: Server, testing_db: Database, tmp_path: Path) -> None:
    with spec.open("rb") as steps:
        done = subprocess.run(
            [installation.isolationtester, testing_db.dsn],
            stdin=steps,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PGISOLATIONTIMEOUT": "60"},
        )
    assert done.returncode == 0, done.stdout + done.stderr
    transcript = tmp_path / f"{spec.stem}.out"
    transcript.write_text(done.stdout)
    reviewed = SPECS / "expected" / transcript.name
    assert reviewed.exists(), f"no {reviewed.name} in isolation/expected; to review: {transcript}\n{done.stdout}"
    difference = difflib.unified_diff(
        reviewed.read_text().splitlines(), done.stdout.splitlines(), "reviewed", str(transcript), lineterm=""
    )
    assert not (lines := list(difference)), "\n".join(lines)

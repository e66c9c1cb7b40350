"""Every spec in isolation/, run by Postgres' own isolationtester against its reviewed transcript.

A spec drives several sessions step by step; the transcript in isolation/expected shows what each step answered and
which steps waited.
"""

import difflib
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.database import Database
from tests.support.server import Server

SPECS = Path(__file__).parent / "isolation"
WAITING = re.compile(r"^step \S+: ((?:(?!^step ).)*?) <waiting \.\.\.>$", re.MULTILINE | re.DOTALL)
OWNER_OR_OPERATOR = re.compile(r"idem\.(?:extend|checkpoint|defer|release|complete|resolve)\(")


@pytest.mark.parts
@pytest.mark.parametrize("spec", sorted(SPECS.glob("*.spec")), ids=lambda path: path.stem)
def test_isolation(spec: Path, installation: Server, testing_db: Database, tmp_path: Path) -> None:
    testing_db.psql(SPECS / "setup.sql")
    with spec.open("rb") as steps:
        done = subprocess.run(
            [installation.isolationtester, testing_db.dsn],
            stdin=steps,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PGISOLATIONTIMEOUT": "10"},
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


@pytest.mark.parametrize("transcript", sorted((SPECS / "expected").glob("*.out")), ids=lambda path: path.stem)
def test_nothing_but_a_call_of_the_owner_or_operator_waits(transcript: Path) -> None:
    waiting = WAITING.findall(transcript.read_text())
    assert [step for step in waiting if not OWNER_OR_OPERATOR.search(step)] == []
    assert len(waiting) == transcript.read_text().count("<waiting")


def test_every_transcript_has_its_spec() -> None:
    specs = {spec.stem for spec in SPECS.glob("*.spec")}
    assert {transcript.stem for transcript in (SPECS / "expected").iterdir()} == specs

"""Every file in pgtap/FUNCTION/BEHAVIOUR.sql, run by pg_prove: `begin; select plan(n); ... finish(); rollback;`.

pg_prove is pgTAP's own runner and as strict as it gets: a failed test, another number of tests than planned, no plan
at all and an error in psql are each a failure.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyidem.embedded import Cluster
from tests.support.database import Database, new_database

SCRIPTS = Path(__file__).parent / "pgtap"


@pytest.fixture(scope="session")
def pgtap_db(server: Cluster, template: str) -> Iterator[Database]:
    """A database with pyidem and pgTAP, testing enabled, shared by all files: each rolls back."""
    with new_database(server, template=template) as database:
        database.enable_testing()
        with database.connect(autocommit=True) as connection:
            connection.execute("create extension pgtap")
        yield database


@pytest.mark.parametrize("script", sorted(SCRIPTS.rglob("*.sql")), ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_pgtap(script: Path, pgtap_db: Database) -> None:
    output, passed = prove(script, pgtap_db)
    assert passed, output


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("begin; select plan(1); select ok(true, 'fine'); select * from finish(); rollback;", None),
        ("begin; select plan(1); select ok(false, 'wrong'); select * from finish(); rollback;", "Failed 1/1"),
        ("begin; select plan(2); select ok(true); select * from finish(); rollback;", "planned 2 tests but ran 1"),
        ("begin; select ok(true, 'no plan'); rollback;", "tried to run a test without a plan"),
        ("select 1;", "No plan found"),
        ("begin; select plan(1); select ok(true); select 1 / 0; rollback;", "division by zero"),
        ("begin; select plan(1); select skip('later'); select * from finish(); rollback;", "SKIP"),
        ("begin; select plan(1); select todo_start(); select ok(false); select * from finish(); rollback;", "TODO"),
    ],
)
def test_a_pgtap_file_passes_only_if_every_planned_test_ran_and_passed(
    script: str, complaint: str | None, tmp_path: Path, pgtap_db: Database
) -> None:
    file = tmp_path / "script.sql"
    file.write_text(script)
    output, passed = prove(file, pgtap_db)
    assert passed == (complaint is None), output
    assert complaint is None or complaint in output


def prove(script: Path, database: Database) -> tuple[str, bool]:
    """Run one file; return everything printed and whether it passed, nothing skipped and nothing left to do."""
    done = subprocess.run(
        ["pg_prove", "--verbose", "--psql-bin", database.cluster.bindir / "psql", script],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | database.environment | {"LC_ALL": "C"},
    )
    waived = re.search(r"^(not )?ok .*# (SKIP|TODO)", done.stdout, re.MULTILINE | re.IGNORECASE)
    return done.stdout, done.returncode == 0 and waived is None

"""The list of mutations has not rotted: each still fits the SQL, names tests that exist, and is in the table."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.broken import Build, builds
from tests.mutants.run import README, SQL, BrokenMutationError, Mutation, mutations, node_id, table, with_table
from tests.support.database import ROOT

MUTATIONS = mutations()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_a_mutation_fits_the_sql(mutation: Mutation) -> None:
    source = (SQL / mutation.file).read_text()
    assert mutation.applied_to(source) != source


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_what_catches_a_mutation_exists(mutation: Mutation) -> None:
    assert mutation.caught_by
    for test in mutation.caught_by:
        suite, _, name = test.partition("/")
        if suite == "pgtap":
            assert (ROOT / "tests" / "pgtap" / f"{name}.sql").is_file(), test
        elif suite == "isolation":
            assert (ROOT / "tests" / "isolation" / f"{name}.spec").is_file(), test
        else:
            file, _, function = test.partition("::")
            assert re.search(rf"^def {function}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE), test


def test_names_are_unique() -> None:
    assert [name for name, times in Counter(one.name for one in MUTATIONS).items() if times > 1] == []


def test_the_table_is_that_of_the_list() -> None:
    page = README.read_text()
    assert with_table(page, MUTATIONS) == page, "run: make mutants"


def test_a_text_that_is_not_there_once_is_refused() -> None:
    mutation = Mutation("name", "I1", "breaks", "file.sql", "once", "", ("test",))
    assert mutation.applied_to("once upon") == " upon"
    for source in ("never", "once and once"):
        with pytest.raises(BrokenMutationError):
            mutation.applied_to(source)


def test_the_table_has_a_row_for_each_mutation() -> None:
    assert len(table(MUTATIONS).splitlines()) == len(MUTATIONS) + 2
    assert node_id("pgtap/reserve/x") == "tests/test_pgtap.py::test_pgtap[reserve/x.sql]"


@pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))
def test_a_broken_build_fits_the_sql(build: Build, tmp_path: Path) -> None:
    made = build.make(tmp_path / "sql")
    assert all((made / edit.file).read_text() != (SQL / edit.file).read_text() for edit in build.edits)

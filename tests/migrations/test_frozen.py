"""The text that migrations run is the text in sql/."""

import hashlib
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrations import freeze
from pyidem import migrate

SQL = migrate.resource("sql")
MIGRATIONS = migrate.resource("migrations")
PSQL_ONLY = {"install.sql", "uninstall.sql"}


def test_the_frozen_text_is_current() -> None:
    stale = [path for path, text in freeze.generated().items() if not path.exists() or path.read_text("ascii") != text]

    assert stale == [], "run `make freeze`"


def test_check_names_a_stale_file_and_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "none").touch()
    monkeypatch.setattr(freeze, "RELEASED", tmp_path / "none")
    before = {path: path.read_text("ascii") for path in freeze.generated()}
    monkeypatch.setattr(freeze, "HEADER", "-- more\n")

    done = CliRunner().invoke(freeze.app, ["freeze", "--check"])

    assert done.exit_code == 1
    assert f"migrations/frozen/{migrate.head()}/up.sql is stale" in done.output
    assert {path: path.read_text("ascii") for path in before} == before


def test_the_checksums_are_those_of_sha256sum() -> None:
    listed = dict(line.split("  ")[::-1] for line in (MIGRATIONS / "CHECKSUMS").read_text().splitlines())
    frozen = {
        path.relative_to(MIGRATIONS).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in MIGRATIONS.glob("frozen/*/*.sql")
    }

    assert listed == frozen


def test_the_manifest_lists_every_file_once() -> None:
    files = {path.relative_to(SQL).as_posix() for path in SQL.rglob("*.sql")} - PSQL_ONLY

    assert sorted(freeze.manifest()) == sorted(files)


def test_psql_stamps_the_head() -> None:
    assert re.findall(r"values \('(\w+)'\)", (SQL / "stamp.sql").read_text("ascii")) == [migrate.head()]


def test_every_revision_has_its_frozen_text_and_a_short_name() -> None:
    revisions = {script.revision for script in migrate.script_directory().walk_revisions()}

    assert revisions == {path.name for path in (MIGRATIONS / "frozen").iterdir()}
    assert all(len(revision) <= 32 for revision in revisions)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("select 'é';\n", "bad.sql:1: a character outside ASCII"),
        ("select 1;\n\tselect 2;\n", "bad.sql:2: a tab"),
        ("select 1;\n\\echo x\n", "bad.sql:2: a psql command"),
        ("-- sql/other.sql\nselect 1;\n", "bad.sql:1: a heading of frozen text"),
        ("select 1;", "bad.sql:1: no single newline"),
        ("select 1\n", "bad.sql:1: no semicolon"),
    ],
)
def test_text_that_cannot_be_frozen_is_refused(
    text: str,
    complaint: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path_factory.mktemp("sql")
    (folder / "bad.sql").write_text(text, "utf-8")
    monkeypatch.setattr(freeze, "SQL", folder)

    with pytest.raises(SystemExit):
        freeze.source("bad.sql")
    assert complaint in capsys.readouterr().err


def test_the_single_file_has_no_psql_commands() -> None:
    text = freeze.single_file()

    assert not re.search(r"^\s*\\", text, re.MULTILINE)
    assert text.count("\nbegin;\n") == text.count("\ncommit;\n") == 1

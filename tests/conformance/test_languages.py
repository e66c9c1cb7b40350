"""What is missing for a language is told, and what is built is built once."""

from pathlib import Path

import pytest

from tests.conformance import languages, provision
from tests.conformance.languages import BuildError, Language


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a language that counts how often it is built, among no others."""
    folder = tmp_path / "logo"
    folder.mkdir()
    (folder / "language.toml").write_text(
        'name = "Logo"\ndriver = "turtle"\nclient = "idem.lg"\nexample = "refund.lg"\nrun = ["{build}/logo"]\n'
        'build = [["sh", "-c", "echo built >>{build}/log; test ! -e broken"]]\n'
        '[needs]\nsh = "dash"\n"/nowhere/turtle*.so" = "libturtle-dev"\nno-such-program = "logo"\n'
    )
    (folder / "refund.lg").write_text(
        "; a refund\n  ; ten lines:\n  to refund\n    fd 10\n  end\n  ; end of ten lines\n"
    )
    (folder / "idem.lg").write_text("to idem\nend\n")
    monkeypatch.setattr(languages, "HERE", tmp_path)
    monkeypatch.setattr(languages, "BUILT", tmp_path / "built")
    return folder


def test_what_is_missing_is_named_with_its_package(folder: Path) -> None:
    assert Language.read(folder).missing() == {"/nowhere/turtle*.so": "libturtle-dev", "no-such-program": "logo"}


def test_where_nothing_may_be_installed_it_is_said_what_would_be(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def refused(packages: list[str]) -> str:
        asked.append(packages)
        return "Run: sudo apt-get install"

    monkeypatch.setattr(provision, "install", refused)
    (tmp_path / "apt-get").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    provision.provide([Language.read(folder)])
    assert asked == [["dash", "libturtle-dev", "logo"]]
    said = capsys.readouterr().out
    assert "Missing for Logo: sh (Debian package dash), /nowhere/turtle*.so (Debian package libturtle-dev)" in said
    assert "Run: sudo apt-get install" in said


def test_it_is_built_again_only_where_a_file_has_changed(folder: Path) -> None:
    Language.read(folder).prepare()
    Language.read(folder).prepare()
    built = Language.read(folder).built / "log"
    assert built.read_text() == "built\n"
    (folder / "idem.lg").write_text("to idem\nfd 1\nend\n")
    Language.read(folder).prepare()
    assert built.read_text() == "built\nbuilt\n"


def test_what_cannot_be_built_is_tried_again_and_told(folder: Path) -> None:
    (folder / "broken").touch()
    with pytest.raises(BuildError, match="Logo"):
        Language.read(folder).prepare()
    with pytest.raises(BuildError, match="Logo"):
        Language.read(folder).prepare()


def test_the_ten_lines_stand_at_the_margin(folder: Path) -> None:
    assert Language.read(folder).ten_lines() == "to refund\n  fd 10\nend\n"


def test_languages_are_chosen_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGES", "logo")
    assert languages.chosen() == [Language.read(folder)]
    monkeypatch.setenv("LANGUAGES", "logo basic")
    with pytest.raises(SystemExit, match="basic"):
        languages.chosen()

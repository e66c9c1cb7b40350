"""What every file in sql/ looks like, and what pgspot says of the whole."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pglast.parser import scan

from tests.support.database import ROOT

SQL = ROOT / "sql"
FILES = sorted(SQL.rglob("*.sql"))
BODY = re.compile(r"\bas \$\$(.*?)\$\$", re.DOTALL)
INCLUDE = re.compile(r"^\\ir (\S+)$", re.MULTILINE)
UNPINNED = re.compile(
    r"^create or replace (?:function (?:idem_private\.|idem\.run\()|procedure idem\.purge_all\()"
    r"(?:(?!\bset search_path\b|;).)*? as \$\$",
    re.MULTILINE | re.DOTALL,
)


def complaints(text: str) -> Iterator[str]:
    """Yield what is wrong with a file's text."""
    if not text.isascii():
        yield "not pure ASCII, which a database in another encoding cannot take"
    if "\t" in text or "\r" in text:
        yield "a tab or a carriage return: what is installed would depend on the tool that installs it"
    if re.search(r" $", text, re.MULTILINE):
        yield "blanks at the end of a line"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield "does not end with one newline"
    for body in BODY.findall(text):
        shouted = {body[token.start : token.end + 1] for token in scan(body) if token.kind != "NO_KEYWORD"}
        yield from (f"keyword {word} in upper case" for word in sorted(shouted) if word != word.lower())


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(SQL)))
def test_a_file_is_plain_and_in_our_style(file: Path) -> None:
    assert list(complaints(file.read_bytes().decode())) == []


@pytest.mark.parametrize(
    "text",
    ["select 'ü';\n", "select\t1;\n", "select 1;\r\n", "select 1; \n", "select 1;", "do as $$ begin IF x $$;\n"],
)
def test_a_departure_from_the_style_is_noticed(text: str) -> None:
    assert len(list(complaints(text))) == 1


def test_the_manifest_names_every_file_once() -> None:
    included = INCLUDE.findall((SQL / "install.sql").read_text())
    entries = {"install.sql", "uninstall.sql"}
    assert sorted(included) == sorted(str(file.relative_to(SQL)) for file in FILES if file.name not in entries)


@pytest.mark.parametrize(
    "file", [file for file in FILES if file.parent != SQL], ids=lambda path: str(path.relative_to(SQL))
)
def test_a_file_is_named_after_the_object_it_makes(file: Path) -> None:
    assert re.search(
        rf"^create (or replace )?(function|procedure|table|view|type) \w+\.{file.stem}\b",
        file.read_text(),
        re.MULTILINE,
    )


def test_pgspot_finds_nothing(tmp_path: Path) -> None:
    """The bodies of PL/pgSQL are left to plpgsql_check: the parser behind pgspot does not know composite types.

    pgspot is told two things that it cannot see. The preamble makes both schemas, inside a block. And a helper without
    a search_path of its own runs under the pinned one of the function that calls it (`test_catalog` shows that nobody
    else can); a trigger is not called by a function of ours, so it has to pin its own. Two must not have one
    and name everything in full: idem.run, whose handler sees the search_path of the caller, and idem.purge_all, which
    commits.
    """
    installation = "".join((SQL / name).read_text() for name in INCLUDE.findall((SQL / "install.sql").read_text()))
    script = tmp_path / "installation.sql"
    script.write_text("create schema idem; create schema idem_private;" + UNPINNED.sub(pin, installation))
    done = subprocess.run(
        [sys.executable, "-m", "pgspot", "--no-plpgsql", script], check=False, capture_output=True, text=True
    )
    assert (done.returncode, "Errors: 0 Warnings: 0 Unknown: 0" in done.stdout) == (0, True), done.stdout + done.stderr


def pin(header: re.Match[str]) -> str:
    """Add the caller's search_path to a helper's header."""
    text = header[0]
    return text if "returns trigger" in text else text.removesuffix(" as $$") + PINNED


PINNED = " set search_path = pg_catalog, pg_temp as $$"

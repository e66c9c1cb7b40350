"""The parts of a Markdown file: fenced blocks, sections and tables."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from tests.support.database import ROOT

README = ROOT / "README.md"
REFERENCE = ROOT / "sql" / "README.md"
CLIENT = ROOT / "pyidem" / "README.md"
MIGRATIONS = ROOT / "migrations" / "README.md"

_markdown = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Fence:
    """One fenced block: its language, the words after it, its text, and where it stands."""

    language: str
    options: tuple[str, ...]
    text: str
    place: str


def fences(document: Path, language: str) -> list[Fence]:
    """Return the blocks in a language, in order."""
    found = []
    for token in _markdown.parse(document.read_text()):
        if token.type == "fence" and token.map is not None and token.info.split()[:1] == [language]:
            place = f"{document.relative_to(ROOT)}:{token.map[0] + 1}"
            found.append(Fence(language, tuple(token.info.split()[1:]), token.content, place))
    return found


def sections(document: Path) -> dict[str, str]:
    """Return the text below each heading, up to the next heading of any level."""
    lines = document.read_text().splitlines()
    headings = [
        (token.map[0], title.content)
        for token, title in pairwise(_markdown.parse(document.read_text()))
        if token.type == "heading_open" and token.map is not None
    ]
    ends = [start for start, _ in headings[1:]] + [len(lines)]
    return {title: "\n".join(lines[start + 1 : end]) for (start, title), end in zip(headings, ends, strict=True)}


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of every table in a text, without the head rows."""
    found: list[list[str]] = []
    for token, content in pairwise(_markdown.parse(text)):
        if token.type == "tr_open":
            found.append([])
        elif token.type == "td_open":
            found[-1].append(content.content)
    return [row for row in found if row]

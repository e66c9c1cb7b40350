"""Links between the pages lead somewhere."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.docs.blocks import sections
from tests.support.database import ROOT

PAGES = [
    *(ROOT / page for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(page for page in sorted(ROOT.glob("[!.]*/**/README.md")) if "node_modules" not in page.parts),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not leads_somewhere(page, link)]

    assert not broken


def links(page: Path) -> list[str]:
    inline = [token for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()) if token.children]
    found = [child.attrGet("href") for token in inline for child in token.children or [] if child.type == "link_open"]
    return [str(link) for link in found if not str(link).startswith("https://")]


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in {slug(title) for title in sections(target)})


def slug(title: str) -> str:
    """Return the anchor that a heading gets: lower case, hyphens for blanks, nothing but letters and digits."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")

"""The page shows every language as it is, and every client is as small as it says."""

import pytest

from tests.conformance import page
from tests.conformance.languages import MAX_CLIENT_LINES, MAX_EXAMPLE_LINES, Language, languages

ALL = languages()


def test_the_page_is_current() -> None:
    assert page.stale() == [], "run: make conformance"


@pytest.mark.parametrize("language", ALL, ids=[language.key for language in ALL])
def test_a_client_is_small_enough_to_be_copied(language: Language) -> None:
    assert 0 < language.lines() <= MAX_CLIENT_LINES
    assert 0 < len([line for line in language.ten_lines().splitlines() if line.strip()]) <= MAX_EXAMPLE_LINES

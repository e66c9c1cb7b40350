"""The API of the demonstration, served for whoever wants to call it."""

from collections.abc import Iterator

import pytest

from tests.support.api import served


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the API of `make demo ARGS=--serve` is reached."""
    with served() as url:
        yield url

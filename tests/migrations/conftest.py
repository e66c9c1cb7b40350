"""A later version of pyidem, made once for each worker."""

import pytest

from tests.migrations.next_version import Checkout, next_version


@pytest.fixture(scope="session")
def later(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the checkout with a second revision."""
    return next_version(tmp_path_factory.mktemp("the next version"))

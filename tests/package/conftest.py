"""One plugin for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.package.hosted import Plugin, plugin


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    """A running plugin."""
    with plugin(tmp_path_factory.mktemp("elsewhere")) as running:
        yield running

"""A user's own Pulumi program in Python, with TPU slices from this package."""

from pathlib import Path

import pytest

from tests.package.outside import Outside
from tests.rig.cloud.world import ACCOUNT, PROJECT_MEMBER

pytestmark = pytest.mark.slow


@pytest.fixture
def own(tmp_path: Path) -> Outside:
    return Outside(tmp_path, "own")


def test_slices_come_up_grow_and_go(own: Outside) -> None:
    own.comes_up_grows_and_goes()
    assert own.things(ACCOUNT) == own.things(PROJECT_MEMBER) == []


def test_a_mistake_is_told_without_a_traceback(own: Outside) -> None:
    program = own.root / "__main__.py"
    program.write_text(program.read_text().replace('"topology": "4x4"', '"topology": "4x5", "slices": 2'))
    told = own.refused()
    assert "SlicePool train cannot be made:" in told
    assert "topology: 4x5\n" in told
    assert "nearest: 4x4" in told
    assert "slices: 2\n" in told
    assert "Traceback" not in told


def test_a_folder_of_the_same_name_is_told_without_a_traceback(own: Outside) -> None:
    (own.root / "infra").mkdir()
    (own.root / "infra" / "__init__.py").touch()
    told = own.refused()
    assert f"Python finds another one: {own.root / 'infra'}" in told
    assert "Traceback" not in told

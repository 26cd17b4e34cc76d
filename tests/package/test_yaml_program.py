"""The slice pool in a program without any Python: Pulumi YAML, and the plugin of plugin/ by its path."""

from pathlib import Path

import pytest

from tests.package import yaml_host
from tests.package.hosted import PLUGIN
from tests.package.outside import PROJECT, ZONE, Outside

pytestmark = pytest.mark.rig


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return yaml_host.build(tmp_path_factory.mktemp("yaml-host"))


@pytest.fixture
def program(host: Path, tmp_path: Path) -> Outside:
    """The program, with the checkout's plugin where the program says that it is."""
    outside = Outside(tmp_path, "yaml", host)
    outside.configure({"project": PROJECT, "zone": ZONE})
    (outside.root / "plugin").symlink_to(PLUGIN)
    return outside


def edit(program: Outside, old: str, new: str) -> None:
    """Change the program's text in one place."""
    file = program.root / "Pulumi.yaml"
    assert file.read_text().count(old) == 1
    file.write_text(file.read_text().replace(old, new))


def test_slices_come_up_grow_and_go(program: Outside) -> None:
    program.comes_up_grows_and_goes()


def test_mistakes_are_told_in_the_words_of_the_program(program: Outside) -> None:
    edit(program, "topology: 4x4", "topology: 4x5")
    edit(program, "slicesMin: ${slices}", "slicesMin: 2000")
    told = program.refused()
    assert "error: tpu-ray:index:SlicePool resource 'train' has a problem: SlicePool train cannot be made" in told
    assert 'property topology with value "4x5" has a problem: a v6e slice has one of these topologies' in told
    assert "nearest: 4x4" in told
    assert "property slicesMin with value 2000 has a problem: must be at most 1024" in told
    assert "Traceback" not in told


def test_an_output_where_a_preview_needs_the_value_is_told(program: Outside) -> None:
    edit(program, "topology: 4x4", "topology: ${cluster.id}")
    told = program.refused()
    assert "SlicePool train cannot be made; topology: an output cannot stand here" in told
    assert "panic" not in told
    assert "Traceback" not in told

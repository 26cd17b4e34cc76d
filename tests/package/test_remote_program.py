"""The slice pool as a remote component: the engine starts the plugin, and the program imports nothing of tpu-ray."""

import json
from pathlib import Path

import pytest

from tests.package.hosted import PLUGIN
from tests.package.outside import Outside

pytestmark = pytest.mark.slow


@pytest.fixture
def remote(tmp_path: Path) -> Outside:
    """A program whose engine finds the plugin as a command on PATH."""
    return Outside(tmp_path, "remote", PLUGIN)


def test_slices_come_up_grow_and_go(remote: Outside) -> None:
    assert "tpu_ray" not in (remote.root / "__main__.py").read_text()
    remote.comes_up_grows_and_goes()


def test_mistakes_are_told_without_a_traceback_of_the_plugin(remote: Outside) -> None:
    remote.configure({"topology": "4x5", "slices": "2000"})
    told = remote.refused()
    assert "SlicePool train cannot be made" in told
    assert "nearest: 4x4" in told
    assert "slicesMax" in told
    assert "slice_pool.py" not in told


def test_the_engine_reads_the_package_that_code_is_generated_from(remote: Outside) -> None:
    schema = json.loads(remote.pulumi("package", "get-schema", PLUGIN / "pulumi-resource-tpu-ray"))
    assert schema["name"] == "tpu-ray"
    assert {"tpu-ray:index:SlicePool", "tpu-ray:index:NodeAccount", "tpu-ray:index:Network"} == set(schema["resources"])

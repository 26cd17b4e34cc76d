"""A training step is the same function on every mesh."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.train.meshes import PADDED, ROWS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """Losses, hashes and final norms by mesh, `data`x`tensor`."""
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.train.meshes"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    meshes: dict[str, Any] = json.loads(done.stdout)
    return meshes


@pytest.mark.parametrize("mesh", ["8x1", "4x2", "1x8"])
def test_a_step_does_not_depend_on_the_mesh(found: dict[str, Any], mesh: str) -> None:
    one, other = found["1x1"], found[mesh]
    assert [line["hash"] for line in other["lines"]] == [line["hash"] for line in one["lines"]]
    assert [line["loss"] for line in other["lines"]] == pytest.approx([line["loss"] for line in one["lines"]], rel=1e-5)
    assert other["norms"] == pytest.approx(one["norms"], rel=1e-5)


def test_padded_rows_do_not_count(found: dict[str, Any]) -> None:
    assert {line["rows"] for line in found["1x1"]["lines"]} == {ROWS - PADDED}

"""Code as an archive, on the real engine and a real API server: edits reach what imports them, and nothing else."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.plan.code import ROOT, TRAIN_ENTRY, archive_of
from infra.platforms.gke import code
from tests.rig.cloud.world import BUCKET_OBJECT
from tests.rig.gke import GkeCheckout, steps
from tests.rig.kube.control_plane import control_plane

pytestmark = [
    pytest.mark.rig,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[GkeCheckout]:
    config = {
        "tpu-ray:platform": {
            "kind": "gke",
            "project": "tpu-ray-test",
            "region": "us-east5",
            "zone": "us-east5-b",
            "image": "us-east5-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0",
            "code": "archive",
            "storage": "gs://tpu-ray-test-code/runs",
            "delete_storage": True,
            "namespace": "training",
            # Protected: what a new archive takes the place of must be let go all the same.
            "cluster": {"deletion_protection": True},
        },
        "tpu-ray:pools": [{"name": "night", "generation": "v6e", "topology": "4x4"}],
        "tpu-ray:services": [],
        "tpu-ray:jobs": [{"name": "story", "pool": "night", "run": "r1"}],
    }
    with control_plane(tmp_path / "plane") as plane:
        plane.take_kuberay()
        yield GkeCheckout(tmp_path, "dev", plane, config)


def test_an_edit_of_serving_code_leaves_a_running_job_and_of_training_code_its_run(
    stack: GkeCheckout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "workloads", tmp_path / "edited/workloads", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "ROOT", tmp_path / "edited")
    first = archive_of(TRAIN_ENTRY)
    up = stack.operate("up")
    assert up.ok, up.failures
    assert set(stack.things(BUCKET_OBJECT)) == {f"tpu-ray-test-code-runs/code/{first.name}"}
    assert set(stack.operate("preview").changes) == {"same"}

    served = tmp_path / "edited/workloads/serve/http.py"
    served.write_text(f"{served.read_text()}\n")
    assert set(stack.operate("preview").changes) == {"same"}

    trained = tmp_path / "edited/workloads/train/loop.py"
    trained.write_text(f"{trained.read_text()}\n")
    second = archive_of(TRAIN_ENTRY, tmp_path / "edited")
    up = stack.operate("up")
    assert up.ok, up.failures
    names = {one.name: f"code-{one.digest[:12]}" for one in (first, second)}
    assert {step for step in steps(up) if "Archive" not in step[1]} == {
        ("create", f"BucketObject {names[second.name]}"),
        ("delete", f"BucketObject {names[first.name]}"),
    }
    # The run's hosts fetch the first one again when they are made anew.
    assert {id.rpartition("/")[2] for id in stack.things(BUCKET_OBJECT)} == {first.name, second.name}
    assert set(stack.operate("preview").changes) == {"same"}

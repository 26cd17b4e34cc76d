"""Checkpoints of one process: which are complete, which are skipped, and metrics that never repeat a step."""

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from etils import epath  # type: ignore[import-untyped]

from workloads.train.checkpoint import MANIFEST, newest_complete, restore, save, step_folder, why_incomplete
from workloads.train.metrics import MetricsLog


def state_of(steps: int) -> dict[str, object]:
    return {"weights": jnp.arange(8.0) + steps, "position": {"step": steps}}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> epath.Path:
    folder = epath.Path(tmp_path_factory.mktemp("run") / "checkpoints")
    for steps in (5, 10, 20):
        save(folder, steps, state_of(steps), keep=2)
    return folder


@pytest.fixture
def folder(saved: epath.Path, tmp_path: Path) -> epath.Path:
    shutil.copytree(saved, tmp_path / "checkpoints")
    return epath.Path(tmp_path / "checkpoints")


def test_the_newest_are_kept_and_restored(folder: epath.Path) -> None:
    said: list[str] = []
    assert sorted(path.name for path in folder.iterdir()) == ["00000010", "00000020"]
    assert newest_complete(folder, said.append) == 20
    like = {"weights": jax.ShapeDtypeStruct((8,), jnp.float32), "position": {"step": 0}}  # type: ignore[no-untyped-call]
    found = restore(folder, 20, like)
    assert np.array_equal(found["weights"], np.arange(8.0) + 20)
    assert found["position"] == {"step": 20}
    assert said == []


def test_a_half_written_copy_is_skipped_and_written_again(folder: epath.Path) -> None:
    """Orbax's own listing would choose this one: maxtext PR 5260."""
    bad = Path(step_folder(folder, 30))
    shutil.copytree(Path(step_folder(folder, 20)), bad)
    (bad / "_CHECKPOINT_METADATA").unlink()
    shutil.rmtree(bad / "d")
    said: list[str] = []
    assert newest_complete(folder, said.append) == 20
    assert said == [
        "checkpoint of step 30 is incomplete (complete.json is of step 20): skipped, it will be written again"
    ]
    save(folder, 30, state_of(30), keep=2)
    assert newest_complete(folder, said.append) == 30
    assert sorted(path.name for path in folder.iterdir()) == ["00000020", "00000030"]


@pytest.mark.parametrize("missing", [MANIFEST, "_CHECKPOINT_METADATA", "_METADATA", "manifest.ocdbt"])
def test_any_missing_file_makes_it_incomplete(folder: epath.Path, missing: str) -> None:
    path = step_folder(folder, 20)
    assert why_incomplete(path) is None
    (path / missing).unlink()
    assert missing in str(why_incomplete(path))
    assert newest_complete(folder, lambda _: None) == 10


def test_a_file_cut_short_makes_it_incomplete(folder: epath.Path) -> None:
    path = step_folder(folder, 20)
    data = max(Path(path).glob("**/d/*"), key=lambda file: file.stat().st_size)
    data.write_bytes(data.read_bytes()[:-1])
    assert "cut off" in str(why_incomplete(path))
    (path / MANIFEST).write_text('{"steps": 20, "fi')
    assert why_incomplete(path) == f"{MANIFEST} is cut off"


def test_a_save_that_was_interrupted_is_no_checkpoint(folder: epath.Path) -> None:
    (folder / "00000040.orbax-checkpoint-tmp").mkdir()
    assert newest_complete(folder, lambda _: None) == 20
    assert newest_complete(folder.parent / "nothing", lambda _: None) is None


def test_steps_are_in_the_metrics_once(tmp_path: Path) -> None:
    path = epath.Path(tmp_path / "metrics.jsonl")
    first = MetricsLog(path, 0)
    for step in range(5):
        first.add({"step": step, "try": 1})
    with path.open("a") as file:
        file.write('{"step": 5, "tr')
    second = MetricsLog(path, 3)
    for step in range(3, 7):
        second.add({"step": step, "try": 2})
    second.flush()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["step"], line["try"]) for line in lines] == [
        (0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2), (6, 2),
    ]  # fmt: skip

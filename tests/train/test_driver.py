"""The driver before it meets Ray: what it refuses, what it writes, and that it leaves the chips alone."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from workloads.data.plan import BatchPlan
from workloads.data.problem import JobProblem
from workloads.spec.job import DataSpec, JobSpec, MeshSpec, ModelSpec
from workloads.spec.launch import JobLaunch
from workloads.spec.slices import resolve_slice
from workloads.train import driver
from workloads.train.__main__ import main
from workloads.train.driver import BAD_JOB, FAILED, OK, check_model, last_line, reserve_tries
from workloads.train.folder import RunFolder

SLICE = resolve_slice("v6e", "4x4")


def launch_of(tmp_path: Path, **job: Any) -> JobLaunch:
    return JobLaunch(job=JobSpec(name="demo", pool="train", **job), slice=SLICE, storage=str(tmp_path))


def test_the_driver_never_imports_jax() -> None:
    """Whoever imports jax takes the chips of the host."""
    code = (
        "import sys, workloads.train.__main__, workloads.train.driver, workloads.train.worker, workloads.data.stream;"
        "import ray.train.v2.jax, workloads.train.found; print('jax' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert shown.stdout.strip() == "False"


def test_a_finished_run_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch = launch_of(tmp_path)
    export = Path(launch.export_dir)
    export.mkdir(parents=True)
    (export / "export.json").write_text(json.dumps({"step": 200}))
    assert main([launch.model_dump_json()]) == OK
    assert "demo-r1 is already finished at step 200" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "demo-r1").iterdir()] == ["export"]


@pytest.mark.parametrize(
    ("job", "key", "nearest"),
    [
        ({"model": ModelSpec(width=100)}, "model.width", 96),
        ({"model": ModelSpec(kv_heads=3)}, "model.kv_heads", 2),
        ({"mesh": MeshSpec(tensor=3)}, "mesh.tensor", 2),
        ({"mesh": MeshSpec(data=8, tensor=4)}, "mesh.data", 4),
    ],
)
def test_a_model_or_mesh_that_cannot_be_built(tmp_path: Path, job: dict[str, Any], key: str, nearest: int) -> None:
    with pytest.raises(JobProblem) as caught:
        check_model(launch_of(tmp_path, **job))
    assert (caught.value.key, caught.value.nearest) == (key, nearest)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"data": DataSpec(global_batch=24)}, "error: data.global_batch: 24"),
        ({"data": DataSpec(source="bundled:nothing")}, "error: data.source: 'bundled:nothing'"),
        ({"data": DataSpec(final_batch="error", global_batch=80)}, "3456 rows make 43 batches and leave 16 rows over"),
    ],
)
def test_a_bad_job_ends_before_ray(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: dict[str, Any], words: str
) -> None:
    assert main([launch_of(tmp_path, **job).model_dump_json()]) == BAD_JOB
    assert words in capsys.readouterr().out


def test_an_argument_that_is_no_launch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['{"job": {"name": "demo", "pool": "p", "stepz": 3}, "storage": "/x"}']) == BAD_JOB
    shown = capsys.readouterr().out
    assert "error: job.stepz" in shown
    assert "error: slice" in shown
    assert main([]) == BAD_JOB


def test_without_a_cluster_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    # `auto` also finds clusters among the processes of the machine, which may be somebody else's.
    monkeypatch.setattr("ray._private.services._cached_find_gcs_addresses", cache(lambda: frozenset[str]()))
    (tmp_path / "text.txt").write_text("some words of a text\n" * 500)
    data = DataSpec(source=str(tmp_path / "text.txt"))
    assert main([launch_of(tmp_path, data=data).model_dump_json()]) == FAILED
    assert "no Ray cluster" in capsys.readouterr().out


def test_a_run_keeps_what_its_result_depends_on(tmp_path: Path) -> None:
    RunFolder(launch_of(tmp_path)).claim()
    RunFolder(launch_of(tmp_path, timeout_s=99, checkpoint_every=7)).check_claim()
    with pytest.raises(JobProblem, match="change `run`") as caught:
        RunFolder(launch_of(tmp_path, learning_rate=0.5)).check_claim()
    assert caught.value.key == "learning_rate"


def test_a_job_that_was_refused_has_not_begun_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "fit", lambda *_: None)
    text = tmp_path / "text.txt"
    text.write_text("words of the first text\n" * 500)
    wrong = DataSpec(source=str(text), final_batch="error")
    assert main([launch_of(tmp_path, data=wrong).model_dump_json()]) == BAD_JOB
    text.write_text("other words\n" * 2000)
    right = DataSpec(source=str(text))
    main([launch_of(tmp_path, data=right).model_dump_json()])
    shown = capsys.readouterr().out
    assert "error: data.global_batch: 32" in shown
    assert "change `run`" not in shown
    rows = [int(found) for found in re.findall(r"run demo-r1: (\d+) rows", shown)]
    assert len(rows) == 1
    assert rows[0] * 128 > len("words of the first text\n") * 500, "the corrected text is trained on"


def test_a_folder_that_cannot_be_used_is_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "demo-r1").write_text("a file where the run's folder should be")
    assert main([launch_of(tmp_path).model_dump_json()]) == FAILED
    assert capsys.readouterr().out.startswith(f"error: the run's folder {tmp_path}/demo-r1 cannot be used: ")


@pytest.mark.parametrize("steps_taken", [[0], [3, 0], [3, 2, 0]])
def test_a_run_that_lost_its_slice_waits_anew_as_long_as_it_gets_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps_taken: list[int]
) -> None:
    monkeypatch.setattr("ray.init", lambda **_: None)
    monkeypatch.setattr("ray.shutdown", lambda: None)
    monkeypatch.setattr(driver, "no_slice", lambda _launch, cause: driver.RunFailed(f"no slice{cause}"))
    folder = RunFolder(launch_of(tmp_path))
    folder.root.mkdir()
    left = list(steps_taken)

    def fit_once(*_: object) -> None:
        with folder.metrics.open("a") as file:
            file.write("{}\n" * left.pop(0))
        raise driver.NoSlice("the slice is gone")

    monkeypatch.setattr(driver, "fit_once", fit_once)
    with pytest.raises(driver.RunFailed, match="no slice"):
        driver.fit(launch_of(tmp_path), BatchPlan(32, 32, 1, 0), folder)
    assert left == [], "one wait for each time that it had got on, and the last"


@pytest.mark.parametrize("timeout_s", [1, 5, 10, 60, 300, 3600, 86400])
def test_the_tries_fit_into_the_time_to_wait(timeout_s: int) -> None:
    one_s, tries = reserve_tries(timeout_s)
    assert tries >= 1
    assert one_s * tries <= max(timeout_s, 2)
    assert timeout_s < 20 or tries >= 3


def test_the_last_line_of_an_error() -> None:
    assert last_line(ValueError("first\n\n  the reason \n")) == "the reason"
    assert last_line(ValueError()) == "ValueError"

"""Whole training runs: real Ray Train, Ray Data and JAX processes on emulated slices."""

import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from tests.train.conftest import SHORT_RUN, Start
from tests.train.emulated import Driver, metrics
from workloads.models.hf import read_json
from workloads.spec.decoder import from_hf_config
from workloads.spec.slices import resolve_slice

pytestmark = pytest.mark.slow


def hashes(driver: Driver) -> list[str]:
    return [line["batch_hash"] for line in metrics(driver.launch)]


def exported(driver: Driver) -> dict[str, np.ndarray]:
    return load_file(Path(driver.launch.export_dir) / "model.safetensors")


def test_it_shows_where_it_is(wide_run: Driver) -> None:
    assert "3456 rows of 128 tokens to train on, 181 held out; 108 steps of 32 rows an epoch" in wide_run.output
    assert "asking for a free v6e 4x4 slice of pool 'four' (4 hosts of 4 chips)" in wide_run.output
    line = wide_run.wait_for(r"step 24/24 epoch 0 loss ([\d.]+) ([\d]+) tokens/s")
    assert 0 < float(line.group(1)) < 5.5
    assert wide_run.output.count("step 24/24") == 1
    assert int(line.group(2)) > 0


def test_it_exports_a_model_that_a_service_can_read(wide_run: Driver) -> None:
    folder = Path(wide_run.launch.export_dir)
    config = from_hf_config(read_json(folder / "config.json"))
    assert (config.heads, config.kv_heads, config.context) == (8, 4, 128)
    assert read_json(folder / "config.json")["eos_token_id"] == 256
    assert exported(wide_run)["model.embed_tokens.weight"].shape == (config.vocab, config.width)
    assert Tokenizer.from_file(str(folder / "tokenizer.json")).encode("if").ids == [105, 102]


def test_a_finished_run_is_not_run_again(wide_run: Driver, start: Start) -> None:
    again = start("four", "wide", **SHORT_RUN)
    assert again.finish() == 0
    assert "already finished at step 24" in again.output
    assert "asking for" not in again.output


def test_batches_are_the_same_for_one_two_and_four_processes(
    single_run: Driver, calm_run: Driver, wide_run: Driver
) -> None:
    first = hashes(single_run)[:6]
    assert len(set(first)) == 6
    assert hashes(calm_run)[:6] == first
    assert hashes(wide_run)[:6] == first


def test_a_killed_worker_changes_nothing(calm_run: Driver, killed_run: Driver) -> None:
    assert "resumed from the checkpoint of step" in killed_run.output
    assert [line["step"] for line in metrics(killed_run.launch)] == list(range(SHORT_RUN["steps"]))
    assert hashes(killed_run) == hashes(calm_run)
    undisturbed, disturbed = exported(calm_run), exported(killed_run)
    assert undisturbed.keys() == disturbed.keys()
    for name, value in undisturbed.items():
        assert value.tobytes() == disturbed[name].tobytes(), name


def test_a_run_goes_on_from_its_last_whole_checkpoint_on_another_slice(calm_run: Driver, moved_run: Driver) -> None:
    assert "checkpoint of step 24 is incomplete" in moved_run.output
    assert "resumed from the checkpoint of step 16, mesh {'data': 4, 'tensor': 1}" in moved_run.output
    assert "checkpoint of step 24 is complete" in moved_run.output
    there, here = metrics(calm_run.launch), metrics(moved_run.launch)
    assert [line["step"] for line in here] == list(range(SHORT_RUN["steps"]))
    assert hashes(moved_run) == hashes(calm_run)
    assert [line["loss"] for line in here[16:]] == pytest.approx([line["loss"] for line in there[16:]], rel=1e-4)


def test_a_slice_that_never_comes_ends_the_run(start: Start) -> None:
    began = time.monotonic()
    driver = start("two", "never", slice=resolve_slice("v6e", "4x8"), reserve_timeout_s=8)
    assert driver.finish() == 1
    assert time.monotonic() - began < 120
    assert "error: no slice within reserve_timeout_s: 8: wanted a free v6e 4x8 slice of pool 'two'" in driver.output
    assert "slice two-0 (2x4): 2 hosts alive, 8 of 8 chips free" in driver.output
    assert driver.lines[-1].startswith("error: ")


def test_a_run_ends_at_its_deadline(start: Start) -> None:
    driver = start("two", "late", slice=resolve_slice("v6e", "4x8"), reserve_timeout_s=3600, timeout_s=20)
    assert driver.finish() == 1
    assert "took longer than timeout_s: 20" in driver.output

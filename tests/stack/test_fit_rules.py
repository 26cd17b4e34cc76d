"""What cannot fit is refused where the user would change it, with slices that really hold it."""

from typing import Any

import pytest

from infra.stack import Problem, StackError, parse_stack
from infra.stack.rules_fit import fit_problems
from tests.render.stacks import GKE
from workloads.spec import Slice, resolve_slice
from workloads.spec.decoder import trained_config
from workloads.spec.fit import serving_fit, training_fit
from workloads.spec.generations import GENERATIONS
from workloads.spec.job import ModelSpec

BIG = {"layers": 32, "width": 4096, "heads": 32, "kv_heads": 8, "mlp_width": 14336, "context": 1024}
"""As Llama 3 8B, over the byte vocabulary: 6,980,653,056 weights."""


def config(generation: str, topology: str, platform: object = GKE, **lists: object) -> dict[str, object]:
    pool = {"name": "p", "generation": generation, "topology": topology, "slices": {"min": 0, "max": 9}}
    made = {"platform": platform, "pools": [pool], **lists}
    return {f"tpu-ray:{name}": value for name, value in made.items()}


def trained(**keys: object) -> list[dict[str, object]]:
    """A job whose slice holds it by itself: only its model counts here."""
    return [
        {"name": "big", "pool": "roomy", "model": BIG, "mesh": {"tensor": 32}, "data": {"global_batch": 32}, **keys}
    ]


def served(generation: str, topology: str, **engine: int) -> dict[str, object]:
    service = {"name": "chat", "pool": "p", "model": "job:big", **({"engine": engine} if engine else {})}
    made = config(generation, topology, services=[service], jobs=trained())
    made["tpu-ray:pools"] += [{"name": "roomy", "generation": "v6e", "topology": "4x8"}]  # type: ignore[operator]
    return made


def problems(stack: dict[str, object]) -> list[Problem]:
    try:
        parse_stack(stack)
    except StackError as error:
        return list(error.problems)
    return []


def shape(words: str) -> Slice:
    generation, topology = words.split()[:2]
    return resolve_slice(generation, topology)


def smaller(than: Slice) -> list[Slice]:
    table = GENERATIONS[than.generation]
    shapes = (resolve_slice(table.name, topology) for topology in table.topologies() if table.ray_accepts(topology))
    return [found for found in shapes if found.chips < than.chips]


def test_a_service_that_fits_is_not_refused() -> None:
    assert problems(served("v5e", "2x2")) == []


def test_weights_that_are_too_large_are_told_at_the_pool_with_slices_that_hold_them() -> None:
    wide = {**BIG, "layers": 80, "width": 8192, "heads": 64, "mlp_width": 28672, "context": 128}
    made = served("v5e", "2x2", context=16, max_slots=1)
    made["tpu-ray:jobs"][0]["model"] = wide  # type: ignore[index]
    made["tpu-ray:pools"][1].update(generation="v7x", topology="4x4x4")  # type: ignore[index]
    made["tpu-ray:jobs"][0].update(mesh={"tensor": 64}, data={"global_batch": 128})  # type: ignore[index]
    (found,) = problems(made)
    assert (found.key, found.value, found.nearest) == ("tpu-ray:services[0].pool", "p", "v5e 4x4")
    assert found.allowed == ("v4 2x2x2", "v5e 4x4", "v5p 2x2x1", "v6e 2x4", "v7x 2x2x1")
    for part in ("on v5e 2x2 (data 1 x tensor 4)", "each chip needs 32.", "= weights 31.", "margin 0.80", "has 16"):
        assert part in found.reason
    size = trained_config(ModelSpec.model_validate(wide))
    for words in found.allowed:
        assert serving_fit(size, 1, 16, shape(words)).holds
        assert not any(serving_fit(size, 1, 16, less).holds for less in smaller(shape(words)))


@pytest.mark.parametrize(
    ("engine", "key"),
    [
        ({"context": 1000, "max_slots": 256}, "context"),
        # The context that follows from the job reads as one that was written: the slots are told.
        ({"max_slots": 256}, "max_slots"),
        ({"context": 1024, "max_slots": 256}, "max_slots"),
    ],
)
def test_a_cache_that_is_too_large_is_told_at_what_the_user_wrote(engine: dict[str, int], key: str) -> None:
    # KV: 128 KiB a token; 256 slots of 1024 tokens are 32 GiB, on one v6e chip beside 13 GiB of weights.
    (found,) = problems(served("v6e", "1x1", **engine))
    assert (found.key, found.value) == (f"tpu-ray:services[0].engine.{key}", engine[key])
    assert "KV cache 32.00" in found.reason
    assert "the smallest slices that hold it are v4 2x2x1, v5e 2x2, v5p 2x2x1, v6e 2x2, v7x 2x2x1" in found.reason
    # The nearest is the most that fits.
    size = trained_config(ModelSpec.model_validate(BIG))
    asked = {"context": 1024, **engine}
    for value, holds in ((found.nearest, True), (found.nearest + 1, False)):
        now = {**asked, key: value}
        assert serving_fit(size, now["max_slots"], now["context"], resolve_slice("v6e", "1x1")).holds is holds
    assert problems(served("v6e", "1x1", **{**asked, key: found.nearest})) == []


def test_emulated_slices_have_no_hbm() -> None:
    made = served("v5e", "1x1", max_slots=256)
    assert problems(made)
    assert problems({**made, "tpu-ray:platform": "local"}) == []


def test_a_model_of_unknown_size_and_broken_parts_are_left_to_others() -> None:
    unknown = config("v5e", "1x1", services=[{"name": "chat", "pool": "p", "model": "gs://bucket/model"}])
    assert problems(unknown) == []
    for part, value in (("model", 3), ("engine", {"context": 8}), ("pool", "q")):
        made = served("v5e", "1x1")
        made["tpu-ray:services"][0][part] = value  # type: ignore[index]
        assert not any("each chip needs" in problem.reason for problem in problems(made) if "services" in problem.key)
    assert list(fit_problems(None, [], [], {})) == []


def job(generation: str, topology: str, **keys: Any) -> list[Problem]:
    entry = {"name": "big", "pool": "p", "model": {**BIG, "context": 128}, **keys}
    return problems(config(generation, topology, jobs=[entry]))


def test_a_job_whose_mesh_leaves_it_whole_is_told_the_tensor_degrees_that_hold_it() -> None:
    # 16 bytes for each of 6,980,653,056 weights are 104 GiB on every chip of any number; a v5p chip has 95.
    (found,) = job("v5p", "2x2x4", data={"global_batch": 16})
    assert (found.key, found.value, found.nearest) == ("tpu-ray:jobs[0].mesh.tensor", 1, 2)
    assert found.allowed == ("2", "4", "8", "16")
    assert "weights 26.01 + gradients 26.01 + optimizer 52.01" in found.reason
    assert job("v5p", "2x2x4", data={"global_batch": 16}, mesh={"tensor": 2}) == []


def test_a_job_that_no_mesh_of_its_slice_holds_is_told_the_slices_that_do() -> None:
    (found,) = job("v5e", "2x2", data={"global_batch": 4}, mesh={"tensor": 4})
    assert (found.key, found.value) == ("tpu-ray:jobs[0].pool", "p")
    assert found.nearest == "v5e 2x4 with mesh.tensor 8"
    size = trained_config(ModelSpec.model_validate({**BIG, "context": 128}))
    for words in found.allowed:
        on, tensor = shape(words), int(words.rpartition("mesh.tensor ")[2]) if "mesh" in words else 4
        batch = -(-4 // on.devices) * on.devices
        assert training_fit(size, batch, tensor, on).holds
        for less in smaller(on):
            batch = -(-4 // less.devices) * less.devices
            degrees = [n for n in range(1, 33) if less.devices % n == 0 and size.heads % n == 0]
            assert not any(training_fit(size, batch, n, less).holds for n in degrees)


def test_a_batch_that_is_too_large_is_told_with_the_largest_that_fits() -> None:
    small = {**BIG, "layers": 16, "width": 2048, "mlp_width": 8192, "context": 1024}
    (found,) = job("v6e", "2x2", model=small, data={"global_batch": 512})
    assert (found.key, found.value) == ("tpu-ray:jobs[0].data.global_batch", 512)
    assert found.allowed == (f"multiples of 4 up to {found.nearest}",)
    assert job("v6e", "2x2", model=small, data={"global_batch": found.nearest}) == []
    assert job("v6e", "2x2", model=small, data={"global_batch": found.nearest + 4})


def test_what_nothing_holds_is_said_to_be_held_by_nothing() -> None:
    (found,) = job("v6e", "2x2", model={**BIG, "layers": 256, "width": 65536, "heads": 2, "kv_heads": 1})
    assert (found.key, found.allowed, found.nearest) == ("tpu-ray:jobs[0].pool", (), None)
    assert found.reason.endswith("no slice holds it")


def test_a_mesh_that_is_none_of_the_slice_is_left_to_its_own_rule() -> None:
    for mesh in ({"tensor": 3}, {"tensor": 2, "data": 9}):
        assert not any("each chip needs" in problem.reason for problem in job("v5e", "2x2", mesh=mesh))

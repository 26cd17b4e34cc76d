"""The Serve application of a service with `engine: vllm`: Ray Serve LLM's, everything about chips derived. Pure.

From Ray 2.60.0: `ray/serve/llm/__init__.py` (build_openai_app), and below `ray/llm/_internal/serve`
`core/configs/llm_config.py` (LLMConfig), `core/configs/accelerators.py` (TPUConfig, TPUAccelerator),
`engines/vllm/vllm_models.py` (VLLMEngineConfig), `core/server/llm_server.py` (get_deployment_options).

With a topology Ray Serve makes no placement group of its own; the replica reserves a slice (`slice_placement_group`).
Without one it takes bundles of one chip wherever they are free, and chips of two slices are no slice. So
`accelerator_type` and `accelerator_config` are always there. Ray is told no machine type (TPUAccelerator passes no
`chips_per_vm`), so a slice of the smaller of two machines cannot be had (`Slice.fewest_hosts`).

The bundles of the group follow from the topology alone: fewer devices than the slice has would still take the slice, so
`tensor_parallel_size` is all its devices, divided by `pipeline_parallel_size`. On v7x a chip is two devices and to Ray
still one `TPU`; TPUAccelerator then counts twice the bundles, and uses only the first one's size.
"""

import math

from infra.plan.autoscaling import number_of_replicas
from workloads.spec import ServiceLaunch, ServiceSpec, VllmSpec
from workloads.spec.engines import PIPELINE
from workloads.spec.replicas import MOST_REPLICAS

LLM_IMPORT_PATH = "ray.serve.llm:build_openai_app"
RESERVE_TRY_S = 100
"""How long a replica's constructor waits for a slice before it fails
(ray/_private/accelerators/tpu.py, DEFAULT_TPU_HEAD_RESERVATION_TIMEOUT_S, which LLMConfig has no key for)."""
RAYS_TRIES = 3
"""How often Serve tries a constructor per replica (ray/serve/_private/constants.py, MAX_PER_REPLICA_RETRY_COUNT)."""
HUB = "hf:"


def openai_app(launch: ServiceLaunch, engine: VllmSpec) -> dict[str, object]:
    """Import path and arguments: `llm_configs` with the one model (LLMServingArgs).

    A range of replicas stands beside the arguments, so that another one restarts no replica.
    """
    made: dict[str, object] = {"import_path": LLM_IMPORT_PATH, "args": {"llm_configs": [llm_config(launch, engine)]}}
    if launch.service.replicas.moves:
        made["deployments"] = [{"name": deployment(launch.model_name), **number_of_replicas(launch.service)}]
    return made


def deployment(model_name: str) -> str:
    """Name of the deployment that holds the model (core/server/builder.py, build_llm_deployment)."""
    return "LLMServer:" + model_name.replace("/", "--").replace(".", "_")


def llm_config(launch: ServiceLaunch, engine: VllmSpec) -> dict[str, object]:
    """The LLMConfig of a service."""
    service, shape = launch.service, launch.slice
    pipeline = engine.kwargs.get(PIPELINE, 1)
    assert isinstance(pipeline, int)
    kwargs = {**engine.kwargs, "tensor_parallel_size": shape.devices // pipeline}
    if engine.context is not None:
        kwargs["max_model_len"] = engine.context
    return {
        "model_loading_config": {"model_id": launch.model_name, "model_source": launch.model.removeprefix(HUB)},
        "accelerator_type": shape.ray_accelerator_type,
        "accelerator_config": {"kind": "tpu", "topology": shape.topology},
        "engine_kwargs": kwargs,
        "deployment_config": _deployment_config(service),
    }


def _deployment_config(service: ServiceSpec) -> dict[str, object]:
    count, each = service.replicas, tries(service.reserve_timeout_s)
    if count.moves:
        # The same for every range. Serve takes the smaller of this and what its replicas have together.
        return {"max_constructor_retry_count": MOST_REPLICAS * each}
    return {"num_replicas": count.max, "max_constructor_retry_count": count.max * each}


def tries(reserve_timeout_s: int) -> int:
    """How often a replica has to try for a slice, to wait that long for it."""
    return math.ceil(reserve_timeout_s / RESERVE_TRY_S)

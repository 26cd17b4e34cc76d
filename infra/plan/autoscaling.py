"""How many replicas Serve keeps of a service: a number, or as many as there is something to do for. Pure.

From Ray 2.60.0: `ray/serve/config.py` (AutoscalingConfig), `ray/serve/_private/config.py` (DeploymentConfig, whose
`num_replicas` and `autoscaling_config` restart no replica).
"""

from workloads.spec import EngineSpec, ServiceSpec, VllmSpec

UPSCALE_DELAY_S = 30
"""How long there has to be too much to do before one more replica comes: Serve's own default. A slice takes minutes to
come and a model to load, so a burst shorter than this is over before either would help."""
VLLM_SEQUENCES = 128
"""For how many requests a replica of vLLM is taken to have room where `max_num_seqs` is not written: what vLLM itself
takes then depends on its version and on the machine."""


def number_of_replicas(service: ServiceSpec) -> dict[str, object]:
    """The keys of an entry of Serve's `deployments` that say it. Serve refuses both of them together."""
    count = service.replicas
    if not count.moves:
        return {"num_replicas": count.max}
    return {
        "autoscaling_config": {
            "min_replicas": count.min,
            "max_replicas": count.max,
            "target_ongoing_requests": room(service),
            "upscale_delay_s": UPSCALE_DELAY_S,
            "downscale_delay_s": count.idle_s,
        }
    }


def room(service: ServiceSpec) -> int:
    """Requests that one replica works on together; with more than that for each, one more replica is wanted.

    Raises:
        TypeError: the engine is the user's own, whose code alone knows.
    """
    engine = service.engine
    if isinstance(engine, EngineSpec):
        return engine.max_slots
    if isinstance(engine, VllmSpec):
        said = engine.kwargs.get("max_num_seqs")
        return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else VLLM_SEQUENCES
    raise TypeError(f"service {service.name} has engine {engine.kind}, whose replicas its own code counts")

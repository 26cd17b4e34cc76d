"""A service: one model, answering over HTTP from replicas that each own a whole slice."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=47)]
"""A DNS-1035 label within KubeRay's limit for RayService and RayJob names."""


class EngineSpec(BaseModel):
    """How much the bundled engine holds at once. Every shape it names is compiled before the service is ready."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_slots: int = Field(default=4, ge=1, le=256, description="Requests decoded together, over the whole slice.")
    context: int = Field(
        default=1024, ge=16, le=131072, description="Tokens of prompt and answer together, per request."
    )
    prefill_buckets: tuple[int, ...] = Field(
        default=(64, 256, 1024), min_length=1, description="Prompt lengths that are compiled, ascending."
    )


class ServiceSpec(BaseModel):
    """One entry of `tpu-ray:services`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name = Field(description="Path of its URL (`/<name>/v1`) and name of its RayService.")
    pool: str = Field(description="The pool whose slices its replicas take.")
    model: str = Field(
        description="`package:<python package>` (a model shipped in an installed package), `job:<job name>` "
        "(what that job's run exported), or a path to a folder or .gguf file."
    )
    replicas: int = Field(default=1, ge=1, le=64, description="Copies of the model; each takes one slice.")
    engine: EngineSpec = EngineSpec()
    ready_timeout_s: int = Field(
        default=900, ge=10, le=86400, description="How long `up` waits until the service answers."
    )
    reserve_timeout_s: int = Field(
        default=300, ge=1, le=86400, description="How long a replica waits for a free slice of its pool."
    )

"""A service: one model, answering over HTTP from replicas that each own a whole slice."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from workloads.spec.engines import AppSpec, VllmSpec
from workloads.spec.replicas import ReplicaCount
from workloads.spec.secret import SecretKey

NAME_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
"""A DNS-1035 label: what Kubernetes lets a service be called."""
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=47)]
"""A DNS-1035 label within KubeRay's limit for RayService and RayJob names."""

LEAST_CONTEXT = 16

_BUCKETS = (64, 256, 1024)


class EngineSpec(BaseModel):
    """How much the bundled engine holds at once. Every shape it names is compiled before the service is ready."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["jax"] = Field(default="jax", description="`jax`: the bundled engine.")
    max_slots: int = Field(default=4, ge=1, le=256, description="Requests decoded together, over the whole slice.")
    context: int = Field(
        default=1024,
        ge=LEAST_CONTEXT,
        le=131072,
        description="Tokens of prompt and answer together, per request. Absent and `model: job:<name>`: that job's.",
    )
    prefill_buckets: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=_BUCKETS,
        min_length=1,
        max_length=32,
        description="Lengths of prompt pieces that are compiled, ascending. A prompt longer than the last is cut. "
        "Absent: those of the default within the context.",
    )

    @model_validator(mode="before")
    @classmethod
    def _buckets_up_to_context(cls, values: object) -> object:
        """Absent buckets follow the context, so that `context: 512` alone is a whole sentence."""
        if not isinstance(values, dict):
            return values
        buckets, context = values.get("prefill_buckets"), values.get("context")
        if isinstance(buckets, list):
            # Strict validation takes a list for a tuple only from JSON itself, not from here.
            return {**values, "prefill_buckets": tuple(buckets)}
        if "prefill_buckets" in values or not isinstance(context, int) or context < 1:
            return values
        shorter = (bucket for bucket in _BUCKETS[:-1] if bucket < context)
        return {**values, "prefill_buckets": (*shorter, min(_BUCKETS[-1], context))}


Engine = Annotated[EngineSpec | VllmSpec | AppSpec, Field(discriminator="kind")]


class ServiceSpec(BaseModel):
    """One entry of `tpu-ray:services`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Name = Field(description="Path of its URL (`/<name>/v1`) and name of its RayService.")
    pool: str = Field(description="The pool whose slices its replicas take.")
    model: str = Field(
        default="",
        description="`package:<python package>` (a model shipped in an installed package), `job:<job name>` "
        "(what that job's run exported), `hf:<organisation>/<name>[@<revision>]` (a model of the Hugging Face hub, "
        "brought into the bucket or onto this machine once), or a path to a folder or .gguf file. Engine `app` has "
        "none: what it loads is its own affair. Required with the other two.",
    )
    replicas: ReplicaCount = Field(
        default=ReplicaCount(min=1, max=1),
        description="Copies of the model; each takes one slice. Number of them, or `{min: ..., max: ...}`.",
    )
    engine: Engine = Field(
        default=EngineSpec(),
        description="What makes the answers: `jax`, the bundled engine, `vllm` or `app`; or a mapping with its `kind` "
        "(absent: `jax`) and sizes.",
    )
    ready_timeout_s: int = Field(
        default=900, ge=10, le=86400, description="How long `up` waits until the service answers."
    )
    reserve_timeout_s: int = Field(
        default=300,
        ge=1,
        le=86400,
        description="How long a replica waits for a free slice of its pool. Engine `app` waits as its code says.",
    )
    secret_env: Mapping[str, SecretKey] = Field(
        default={},
        max_length=100,
        # It is the pods', and no argument of what runs in them.
        exclude=True,
        description="Environment variables whose values are secrets, on all hosts of the service: name to "
        "`{secret, key}`. On `local`, what the variable is where `up` starts the cluster.",
    )
    wait: bool = Field(
        default=True,
        exclude=True,
        description="Whether `up` waits until the service answers, and fails where it does not. With `false` it is "
        "green as soon as the service is asked for; `tpu-ray status` tells what became of it.",
    )
    paused: bool = Field(
        default=False,
        # No replica gets to know: it is not there.
        exclude=True,
        description="Whether it is ended and takes no slice; its URL stays its own. `tpu-ray pause` and `resume` write "
        "it. Where the pool keeps slices (`slices.min`), they are billed all the same.",
    )

    @field_validator("replicas", mode="before")
    @classmethod
    def _number_of_replicas(cls, value: object) -> object:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return {"min": value, "max": value} if whole else value

    @field_validator("engine", mode="before")
    @classmethod
    def _engine_in_full(cls, value: object) -> object:
        """The bare word is an engine with its defaults, and a mapping without `kind` is the bundled one's."""
        if isinstance(value, str):
            return {"kind": value}
        return {"kind": "jax", **value} if isinstance(value, dict) else value

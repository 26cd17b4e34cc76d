"""The engines besides the bundled one: vLLM through Ray Serve LLM, and the user's own Serve application."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

IMPORT_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
"""How Serve is told what to import: `module:attribute`."""
PATH_PATTERN = r"^/[-._~%/A-Za-z0-9]*$"
"""The path of a URL below a service's own."""

PIPELINE = "pipeline_parallel_size"
DERIVED_FROM_SLICE = (
    "tensor_parallel_size",
    "data_parallel_size",
    "data_parallel_size_local",
    "distributed_executor_backend",
)
"""vLLM's arguments that say how many chips there are and who starts its workers: they follow from the slice."""
SAID_ELSEWHERE = {"model": "model", "served_model_name": "model", "max_model_len": "engine.context"}
"""vLLM's arguments that stand in other keys of the service. Ray Serve LLM itself refuses the first two
(ray/llm/_internal/serve/engines/vllm/vllm_models.py of 2.60.0, `get_initialization_kwargs`)."""


class VllmSpec(BaseModel):
    """vLLM. Where its replicas run follows from the slice of the pool, and cannot be said here."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["vllm"] = Field(
        default="vllm", description="`vllm`: vLLM through Ray Serve LLM; the image has to hold it. Not on `local`."
    )
    context: int | None = Field(
        default=None,
        ge=16,
        le=1048576,
        description="Tokens of prompt and answer together, per request (`max_model_len`). Absent: the model's own; "
        "with `model: job:<name>` that job's.",
    )
    kwargs: dict[str, JsonValue] = Field(
        default={},
        description="Further arguments of vLLM's engine, passed on as they are (`max_num_seqs`, `dtype`, ...). Those "
        "that follow from the slice are refused; `pipeline_parallel_size` is 1 or the slice's hosts.",
    )


class AppSpec(BaseModel):
    """The user's own Serve application."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["app"] = Field(default="app", description="`app`: an application of your own.")
    import_path: str = Field(
        pattern=IMPORT_PATTERN,
        description="What Serve imports: a bound application, or a function that makes one of `args`. The image (on "
        "`local`: the environment of `tpu-ray`) has to hold it.",
    )
    args: dict[str, JsonValue] = Field(
        default={},
        description="Arguments of that function, as they are. They can be read by whoever sees the stack: no secrets.",
    )
    health: str | None = Field(
        default=None,
        pattern=PATH_PATTERN,
        description="Path below `/<name>` whose GET is answered with a status below 400 while the application serves. "
        "Absent: `/`, and any answer of the application below 500 will do.",
    )

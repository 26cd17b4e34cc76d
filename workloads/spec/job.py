"""A job: one run on one slice, of the bundled recipe (a text becomes a model) or of the user's own command."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from workloads.spec.secret import SecretKey
from workloads.spec.service import Name


class ModelSpec(BaseModel):
    """Shape of the Llama-family model that is trained from scratch."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    layers: int = Field(default=2, ge=1, le=256, description="Decoder layers.")
    width: int = Field(default=128, ge=8, le=262144, description="Size of the residual stream; heads x head_dim.")
    heads: int = Field(default=8, ge=1, le=1024, description="Attention heads.")
    kv_heads: int = Field(default=4, ge=1, le=1024, description="Heads of keys and values; they divide the heads.")
    mlp_width: int = Field(default=384, ge=8, le=1048576, description="Inner size of the MLP.")
    context: int = Field(default=128, ge=16, le=131072, description="Tokens per training row.")


class MeshSpec(BaseModel):
    """How the slice's devices are divided: `data * tensor` is their number. Absent, data takes what tensor leaves."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    data: int | None = Field(default=None, ge=1, description="Devices over which the rows of a batch are divided.")
    tensor: int = Field(default=1, ge=1, description="Devices over which each layer is divided; divides the heads.")


BUNDLED_TEXTS = ("python-reference",)
"""The texts that come with the package, as `bundled:<name>`."""


class DataSpec(BaseModel):
    """Which text, and how it becomes batches. The batch of step s depends on (seed, epoch, s) and nothing else."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    source: str = Field(
        default="bundled:python-reference",
        description="`bundled:<name>`, or a path to a .txt or .parquet (column `text`).",
    )
    global_batch: int = Field(
        default=32, ge=1, le=16777216, description="Rows per step over all hosts; a multiple of the devices."
    )
    final_batch: Literal["drop", "pad", "error"] = Field(
        default="drop",
        description="The ragged batch at an epoch's end: dropped, padded (padded rows leave the loss), or refused.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of the order of the rows.")
    held_out: float = Field(default=0.05, gt=0, lt=0.5, description="Fraction of rows kept out of training.")


SCHEDULE_PATTERN = (
    r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[-*/,?0-9A-Za-z]+( +[-*/,?0-9A-Za-z]+){4})$"
)
"""Five fields, or a word for them: what Kubernetes' CronJob and KubeRay's RayCronJob both take (robfig/cron,
ParseStandard). https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax"""
ZONE_PATTERN = r"^[A-Z][-+_A-Za-z0-9]+(/[A-Z][-+_A-Za-z0-9]*)*$"
COMMAND_PATTERN = r"\S"


class JobSpec(BaseModel):
    """One entry of `tpu-ray:jobs`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: Name = Field(description="With the run it names the RayJob: `<name>-<run>`.")
    pool: str = Field(description="The pool whose slice it takes, for the length of the run.")
    run: Name = Field(default="r1", description="A new value here, and only here, starts the job again.")
    steps: int = Field(default=200, ge=1, le=1000000000, description="Steps of training.")
    learning_rate: float = Field(default=3e-3, gt=0, description="The highest, after warm-up.")
    checkpoint_every: int = Field(default=50, ge=1, le=1000000000, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(default=2, ge=1, le=10000, description="Checkpoints that are kept, the newest.")
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of the first parameters.")
    model: ModelSpec = Field(default=ModelSpec(), description="Shape of the model.")
    mesh: MeshSpec = Field(default=MeshSpec(), description="How the devices of the slice are divided.")
    data: DataSpec = Field(default=DataSpec(), description="Which text, and how it becomes batches.")
    max_failures: int = Field(default=3, ge=0, le=100, description="Restarts after a lost worker or host.")
    reserve_timeout_s: int = Field(default=300, ge=1, le=86400, description="How long the job waits for its slice.")
    timeout_s: int = Field(
        default=3600, ge=10, le=864000, description="How long a run, or one try of it, may take, waiting included."
    )
    entrypoint: str | None = Field(
        default=None,
        min_length=1,
        max_length=8192,
        pattern=COMMAND_PATTERN,
        description="Your own command in place of the recipe, e.g. `python my/train.py --steps 100`; a shell runs it "
        "beside the head of Ray. What is above, from `steps` to `reserve_timeout_s`, is the recipe's, and not "
        "written then.",
    )
    env: Mapping[str, str] = Field(
        default={},
        max_length=100,
        description="Environment variables of the run, on all its hosts. Plain text, never a secret.",
    )
    secret_env: Mapping[str, SecretKey] = Field(
        default={},
        max_length=100,
        description="Variables whose values are secrets, on all hosts of the run: name to `{secret, key}`. On `local`, "
        "what the variable is where `up` starts the cluster.",
    )
    retries: int = Field(
        default=0,
        ge=0,
        le=100,
        description="How often a run that failed begins again, each time on a new Ray cluster with the same folder. "
        "The recipe restarts by itself before (`max_failures`). One that took longer than `timeout_s` does not. The "
        "local platform retries nothing: its cluster stays.",
    )
    keep_cluster_s: int | None = Field(
        default=None,
        ge=0,
        le=86400,
        description="How long a finished run's Ray cluster, and so its slice and its bill, stays for a look at it. "
        "Absent: 300; 0 where a service waits for the slice. The local platform keeps its cluster.",
    )
    suspend: bool = Field(
        default=False,
        description="`true` ends the run and frees its slice; `false` again begins it anew, the recipe from its "
        "checkpoint. With `schedule` no further run begins. Not with `capacity: queued`, where Kueue decides.",
    )
    wait: bool = Field(default=False, description="Whether `up` waits for the run's end, and fails where it fails.")
    schedule: str | None = Field(
        default=None,
        pattern=SCHEDULE_PATTERN,
        description='When a run begins: `"0 3 * * *"` (minute, hour, day, month, weekday), not at `up`. Each is called '
        "`<name>-<run>-<time>` and has a folder of its own; where the last one still runs, none begins. The local "
        "platform runs none: it is not there at night.",
    )
    time_zone: str | None = Field(
        default=None, pattern=ZONE_PATTERN, description="Of `schedule`, e.g. `Europe/Berlin`; absent: `Etc/UTC`."
    )
    keep_runs: int = Field(
        default=5, ge=1, le=100, description="With `schedule`: how many finished runs are still listed, the newest."
    )


RECIPE_KEYS = (
    "steps",
    "learning_rate",
    "checkpoint_every",
    "keep_checkpoints",
    "seed",
    "model",
    "mesh",
    "data",
    "max_failures",
    "reserve_timeout_s",
)
"""Keys of a job that only the bundled recipe has a use for."""
PLATFORM_KEYS = (
    "entrypoint",
    "env",
    "secret_env",
    "retries",
    "keep_cluster_s",
    "suspend",
    "wait",
    "schedule",
    "time_zone",
    "keep_runs",
)
"""Keys that say how a platform starts, keeps and ends a run; the recipe is not told them."""

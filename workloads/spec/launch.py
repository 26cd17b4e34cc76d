"""The one JSON value a workload process gets: its own spec, its slice, and where its files live.

`infra` writes it, `workloads` reads it; both platforms use the same two functions.
"""

import hashlib
import json

from pydantic import BaseModel, ConfigDict

from workloads.spec.job import JobSpec
from workloads.spec.service import EngineSpec, ServiceSpec
from workloads.spec.slices import Slice


class ServiceLaunch(BaseModel):
    """Argument of `workloads.serve.app:build`, the `args` of one Serve application."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: ServiceSpec
    slice: Slice
    model: str
    """The resolved model: `package:<name>` or a path. A `job:` reference is resolved by `infra` before this point."""
    model_name: str
    """What clients put in `model` and `/v1/models` lists."""
    model_version: str = ""
    """The exported checkpoint's step of a `job:` model; a new value redeploys the application."""

    @property
    def arguments(self) -> dict[str, object]:
        """The value as JSON, without what no replica needs to know: Serve restarts all of them where it changes."""
        found: dict[str, object] = self.model_dump(mode="json", exclude={"service": {"replicas", "ready_timeout_s"}})
        return found

    @property
    def mark(self) -> str:
        """Names this value among those the service had before; `/health` gives it back, so that who waits for a new one
        does not take the old one's answer for it."""
        return hashlib.sha256(json.dumps(self.arguments).encode()).hexdigest()[:12]

    @property
    def engine(self) -> EngineSpec:
        """The bundled engine's sizes.

        Raises:
            TypeError: the service has another engine.
        """
        if not isinstance(self.service.engine, EngineSpec):
            raise TypeError(f"service {self.service.name} has engine {self.service.engine.kind}, not the bundled one")
        return self.service.engine


SLICES_VARIABLE = "TPU_RAY_SLICES"
"""Environment variable of an application of the user's own (engine `app`): a DeclaredSlices as JSON."""


class DeclaredSlices(BaseModel):
    """The slices that a service's entry declares, for an application that places itself on them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slice: Slice
    pool: str
    """Every host of the pool carries the Ray resource `pool:<name>`."""
    replicas: int
    """How many slices are the service's."""


class JobLaunch(BaseModel):
    """Argument of `python -m workloads.train`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: JobSpec
    slice: Slice
    storage: str
    """Folder or bucket shared by all hosts. A run writes only below `<storage>/<job>-<run>/`."""

    @property
    def run_name(self) -> str:
        """`<job>-<run>`: the RayJob's name, the Ray submission id, and the run's folder below `storage`."""
        return f"{self.job.name}-{self.job.run}"

    @property
    def export_dir(self) -> str:
        """Where the run leaves its model: HF layout (config.json, model.safetensors, tokenizer.json) and export.json.

        `export.json` is written last and holds `{"step": int, ...}`: while it is missing the export is not complete.
        """
        return f"{self.storage}/{self.run_name}/export"

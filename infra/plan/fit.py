"""How much of a chip's HBM each service and each job takes. The arithmetic is `workloads.spec.fit`."""

from pydantic import BaseModel, ConfigDict

from infra.stack import StackSpec
from infra.stack.model_size import SizeOf, served_size, trained_size
from workloads.spec import EngineSpec, JobSpec, ServiceSpec
from workloads.spec.fit import GIB, Fit, serving_fit, training_fit

UNCHECKED = "unchecked"


class HbmPlan(BaseModel):
    """HBM of one chip. `gib_per_chip` is what weights, cache and state take of `hbm_gib_per_chip`, to a hundredth, and
    `percent` how much of it that is, both rounded up. `bytes_per_chip` are the parts; with `margin_bytes` they are at
    most what the chip has. `unchecked` says why nothing of this is known, and then it is all None and empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hbm_gib_per_chip: int
    gib_per_chip: float | None = None
    percent: int | None = None
    bytes_per_chip: dict[str, int] = {}
    margin_bytes: int | None = None
    unchecked: str | None = None

    def __str__(self) -> str:
        if self.gib_per_chip is None:
            return UNCHECKED
        return f"{self.gib_per_chip:.2f} of {self.hbm_gib_per_chip} GiB, {self.percent} %"


def service_hbm(stack: StackSpec, service: ServiceSpec, size_of: SizeOf) -> HbmPlan | None:
    """That of a replica's chips. None on one machine, whose emulated slices have no HBM."""
    on, engine = stack.pool(service.pool).slice, service.engine
    if stack.platform.kind == "local":
        return None
    if not isinstance(engine, EngineSpec):
        return HbmPlan(
            hbm_gib_per_chip=on.hbm_gib_per_chip, unchecked=f"how engine {engine.kind} divides the HBM is its own"
        )
    size = served_size(service.model, stack.jobs, size_of)
    if isinstance(size, str):
        return HbmPlan(hbm_gib_per_chip=on.hbm_gib_per_chip, unchecked=size)
    return _of(serving_fit(size, engine.max_slots, engine.context, on))


def job_hbm(stack: StackSpec, job: JobSpec) -> HbmPlan | None:
    """That of the chips of a job's slice. None on one machine."""
    on, size = stack.pool(job.pool).slice, trained_size(job)
    if stack.platform.kind == "local":
        return None
    if isinstance(size, str):
        return HbmPlan(hbm_gib_per_chip=on.hbm_gib_per_chip, unchecked=size)
    return _of(training_fit(size, job.data.global_batch, job.mesh.tensor, on))


def _of(fit: Fit) -> HbmPlan:
    return HbmPlan(
        hbm_gib_per_chip=fit.hbm // GIB,
        gib_per_chip=-(-100 * fit.used // GIB) / 100,
        percent=fit.percent,
        bytes_per_chip=fit.parts,
        margin_bytes=fit.margin,
    )

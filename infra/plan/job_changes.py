"""What an edit of a stack file does to its jobs: a run keeps what it was started with. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from infra.stack import GkePlatform, StackSpec
from workloads.spec import JobSpec

JobFate = Literal["added", "removed", "same", "new run", "next run", "next time", "suspended", "resumed", "scheduled"]
"""`new run`: the run before goes, then this one begins. `next run`: nothing happens until `run:` is another. `next
time`: the schedule's next run has it. `scheduled`: a run at `up` becomes runs at their times, or the other way."""

MEANS: Mapping[JobFate, str] = {
    "added": "it begins",
    "removed": "it ends, and what it has left stays",
    "same": "",
    "new run": "the run before ends, then this one begins",
    "next run": "applies to the next run: write another `run:`",
    "next time": "applies from the next time of its schedule on",
    "suspended": "its run ends and frees its slice",
    "resumed": "its run begins again",
    "scheduled": "what runs now ends; it begins as its schedule says, or at `up` where it has none any more",
}

NOT_OF_A_RUN = ("name", "run", "suspend", "wait")
"""Keys of a job that are followed at once, or that say nothing about how a run is started."""
OF_A_SCHEDULE = ("schedule", "time_zone", "keep_runs")
OF_PLATFORM = ("image", "ray_version", "storage")
OF_POOL = ("generation", "topology", "machine_type", "capacity")


class JobChange(BaseModel):
    """What happens to one job. `keys` are those with another value that its next run has, and this one has not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: str
    fate: JobFate
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In words, with the keys that wait."""
        return MEANS[self.fate] + (f" ({', '.join(self.keys)})" if self.keys else "")


def settings(stack: StackSpec, job: JobSpec) -> dict[str, Any]:
    """What a run is started with: key to value, e.g. `data.seed`, `pool.topology`, `platform.image`."""
    found = dict(_flat(job.model_dump(mode="json", exclude={*NOT_OF_A_RUN, *OF_A_SCHEDULE})))
    pool = stack.pool(job.pool).model_dump(mode="json")
    found |= {f"pool.{key}": pool[key] for key in OF_POOL}
    if isinstance(stack.platform, GkePlatform):
        platform = stack.platform.model_dump(mode="json")
        found |= {f"platform.{key}": platform[key] for key in OF_PLATFORM}
    return found


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of two settings whose values differ, in the order of the second."""
    return tuple(key for key in {**after, **before} if before.get(key) != after.get(key))


def job_changes(before: StackSpec | None, after: StackSpec) -> tuple[JobChange, ...]:
    """What becomes of each job: those of `after` in its order, then those that go. None: there was no stack."""
    old = {job.name: job for job in before.jobs} if before else {}
    told = [
        _changed(before, old[job.name], after, job)
        if before and job.name in old
        else JobChange(job=job.name, fate="added")
        for job in after.jobs
    ]
    staying = {job.name for job in after.jobs}
    return (*told, *(JobChange(job=name, fate="removed") for name in old if name not in staying))


def _changed(before: StackSpec, was: JobSpec, after: StackSpec, now: JobSpec) -> JobChange:
    if (was.schedule is None) != (now.schedule is None):
        return JobChange(job=now.name, fate="scheduled")
    if was.run != now.run:
        return JobChange(job=now.name, fate="new run")
    keys = differing(settings(before, was), settings(after, now))
    if was.suspend != now.suspend:
        return JobChange(job=now.name, fate="suspended" if now.suspend else "resumed", keys=keys)
    if now.schedule is not None:
        keys = (*(key for key in OF_A_SCHEDULE if getattr(was, key) != getattr(now, key)), *keys)
        return JobChange(job=now.name, fate="next time" if keys else "same", keys=keys)
    return JobChange(job=now.name, fate="next run" if keys else "same", keys=keys)


def _flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """`{"data": {"seed": 0}}` as ("data.seed", 0)."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{before}{key}.")
        else:
            yield f"{before}{key}", inner

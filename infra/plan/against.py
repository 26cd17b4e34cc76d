"""A plan beside the one of an earlier stack file: chips and dollars before and after, and what
changes in the cluster and its pools. Pure."""

from collections.abc import Iterator
from datetime import date

from pydantic import BaseModel, ConfigDict

from infra.plan.changes import ClusterChange, PoolChange, changes, cluster_change
from infra.plan.job_changes import JobChange, job_changes
from infra.plan.report import Plan, plan
from infra.plan.service_fates import ServiceChange
from infra.stack import GkePlatform, StackSpec


class Comparison(BaseModel):
    """`ref` is what Git was asked for. `before` is None where there was no stack file, or none that can be read;
    `refused` says why it cannot be read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: str
    before: Plan | None
    refused: str | None = None
    after: Plan
    cluster: ClusterChange
    changes: tuple[PoolChange, ...]
    services: tuple[ServiceChange, ...] = ()
    jobs: tuple[JobChange, ...] = ()
    unknown: tuple[str, ...] = ()
    """What a comparison of two stack files cannot know, in sentences."""


def against(
    name: str,
    ref: str,
    before: StackSpec | None,
    after: StackSpec,
    today: date,
    refused: str | None = None,
    services: tuple[ServiceChange, ...] = (),
) -> Comparison:
    """The plan of `after` beside that of `before`, both with today's prices. `services` is what becomes of them, which
    the platform knows (`infra.platforms.service_changes`)."""
    return Comparison(
        ref=ref,
        before=None if before is None else plan(name, before, today),
        refused=refused,
        after=plan(name, after, today),
        cluster=cluster_change(before, after),
        changes=changes(before, after),
        services=services,
        jobs=job_changes(before, after),
        unknown=tuple(_unknown(before, after)),
    )


def _unknown(before: StackSpec | None, after: StackSpec) -> Iterator[str]:
    if before is not None and _is_archive(before) and _is_archive(after):
        yield (
            "platform.code is archive: whether an edit of the code in `workloads` changes services (in place) or the "
            "next runs of jobs is told by `tpu-ray preview`; two stack files do not say it."
        )


def _is_archive(stack: StackSpec) -> bool:
    return isinstance(stack.platform, GkePlatform) and stack.platform.code == "archive"

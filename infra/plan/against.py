"""A plan beside the one of an earlier stack file: chips and dollars before and after, and what
changes in the cluster and its pools. Pure."""

from datetime import date

from pydantic import BaseModel, ConfigDict

from infra.plan.changes import ClusterChange, PoolChange, changes, cluster_change
from infra.plan.report import Plan, plan
from infra.plan.service_fates import ServiceChange
from infra.stack import StackSpec


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
    )

"""What an edit of a stack file does to each service, read from what the platform makes of it before and after. Pure."""

from collections.abc import Mapping
from typing import Any, cast

import yaml

from infra.plan.changes import changes, cluster_change
from infra.plan.chips import in_use, kept_beside
from infra.plan.identity import CLUSTER
from infra.plan.launches import JOB_MODEL, service_launch
from infra.plan.service_fates import Answers, Fate, ServiceChange
from infra.plan.workloads import serve_application
from infra.platforms.gke.job_manifest import hands_over_slice
from infra.platforms.gke.manifests import ray_service
from infra.stack import GkePlatform, StackSpec
from workloads.spec import ServiceSpec


def service_changes(before: StackSpec | None, after: StackSpec) -> tuple[ServiceChange, ...]:
    """What becomes of each service: those of `after` in its order, then those that go. None: there was no stack.

    A service that is paused is one that is not there.
    """
    old = {service.name: service for service in before.running_services} if before else {}
    told = [
        _changed(before, old[new.name], after, new)
        if before and new.name in old
        else ServiceChange(service=new.name, fate="added", answers="none", peak_chips=_chips(after, new))
        for new in after.running_services
    ]
    staying = {service.name for service in after.running_services}
    gone = [
        ServiceChange(service=name, fate="removed", answers="gone", peak_chips=_chips(before, service))
        for name, service in old.items()
        if before and name not in staying
    ]
    return (*told, *gone)


def _changed(before: StackSpec, old: ServiceSpec, after: StackSpec, new: ServiceSpec) -> ServiceChange:
    fate = _fate(before, old, after, new)
    was, now = _chips(before, old), _chips(after, new)
    answers: Answers = "all"
    if fate in ("replaced", "new hosts"):
        answers = "none"
    elif fate == "in place" and min(old.replicas.min, new.replicas.min) == 1:
        answers = "late"
    return ServiceChange(
        service=new.name,
        fate=fate,
        answers=answers,
        peak_chips=was + now if fate in ("beside", "stuck") else max(was, now),
    )


def _fate(before: StackSpec, old: ServiceSpec, after: StackSpec, new: ServiceSpec) -> Fate:
    if not (isinstance(before.platform, GkePlatform) and isinstance(after.platform, GkePlatform)):
        if before.platform.kind != after.platform.kind or before.pools != after.pools:
            return "replaced"
        more = new.replicas.min > old.replicas.min
        return _in_serve(_local(before, old), _local(after, new), more) or "same"
    if cluster_change(before, after).keys:
        return "replaced"
    was, now = ray_service(before.platform, before, old), ray_service(after.platform, after, new)
    if _part(was, "metadata", "namespace") != _part(now, "metadata", "namespace"):
        return "replaced"
    groups = [len(_part(one, "spec", "rayClusterConfig", "workerGroupSpecs")) for one in (was, now)]
    clusters = [_part(one, "metadata", "annotations", CLUSTER) for one in (was, now)]
    rolled_out = clusters[0] != clusters[1] or groups[1] < groups[0]
    if _gives_slice_to_its_run(before, after, new):
        return "replaced"
    beside = _part(now, "spec", "upgradeStrategy", "type") != "None"
    if rolled_out and (not beside or max(groups[1], kept_beside(after, new)) < groups[0]):
        return "replaced"
    # Hosts that are made anew go before the service changes; those of a pool that goes, at the end of the `up`.
    lost = {change.pool: change for change in changes(before, after)}[old.pool]
    if lost.hosts and (lost.fate == "replaced" or (lost.fate == "removed" and not new.wait)):
        return "new hosts"
    if rolled_out:
        return "beside" if _fits_beside(before, old, after, new) else "stuck"
    applications = [yaml.safe_load(_part(one, "spec", "serveConfigV2"))["applications"][0] for one in (was, now)]
    return _in_serve(applications[0], applications[1], new.replicas.min > old.replicas.min) or "same"


def _gives_slice_to_its_run(before: StackSpec, after: StackSpec, service: ServiceSpec) -> bool:
    """Whether another run of the job whose model it serves begins, on the slice that the service has."""
    runs = {f"{JOB_MODEL}{job.name}": job.run for job in before.jobs if job.schedule is None}
    return any(
        service.model == name and runs.get(name, job.run) != job.run and hands_over_slice(after, job)
        for job in after.jobs
        for name in [f"{JOB_MODEL}{job.name}"]
    )


def _fits_beside(before: StackSpec, old: ServiceSpec, after: StackSpec, new: ServiceSpec) -> bool:
    """Whether the pool has the slices for the new cluster while all is there that goes at the end of the `up`."""
    pool = new.pool
    services = {service.name for service in after.running_services if service.pool == pool}
    jobs = {job.name for job in after.jobs if job.pool == pool}
    going = sum(s.replicas.max for s in before.running_services if s.pool == pool and s.name not in services)
    going += sum(1 for job in before.jobs if job.pool == pool and job.name not in jobs)
    # Counted in the pool of before only where the service was in it too.
    held = old.replicas.max if old.pool == pool else 0
    others = in_use(after, after.pool(pool)) - new.replicas.max
    return others + going + held + new.replicas.max <= after.pool(pool).slices.max


def _in_serve(was: Mapping[str, Any], now: Mapping[str, Any], more: bool) -> Fate | None:
    """What Serve does where an application changes; None where nothing does. `more`: whether replicas have to come."""
    if {**was, "deployments": None} != {**now, "deployments": None}:
        return "in place"
    if was == now:
        return None
    return "more slices" if more else "other number"


def _local(stack: StackSpec, service: ServiceSpec) -> Mapping[str, Any]:
    return serve_application(service_launch(stack, service, ""))


def _chips(stack: StackSpec, service: ServiceSpec) -> int:
    return service.replicas.max * stack.pool(service.pool).slice.chips


def _part(manifest: Mapping[str, object], *path: str) -> Any:
    found: Any = manifest
    for key in path:
        found = cast(Mapping[str, Any], found)[key]
    return found

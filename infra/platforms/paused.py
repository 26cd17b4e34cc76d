"""A service that takes no slice: what Pulumi makes of it, and that it is told."""

import pulumi

from infra.stack import StackSpec
from workloads.spec import ServiceSpec

_JOB = "job:"


def tell_paused(stack_name: str, stack: StackSpec) -> None:
    """Say, in a running Pulumi program, which services are left out and how they come back."""
    for service in stack.services:
        if service.paused:
            pulumi.log.info(f"service {service.name} is paused: `tpu-ray resume {service.name} -s {stack_name}`")


def resources_of(stack_name: str, project: str, platform: str, service: ServiceSpec) -> tuple[str, ...]:
    """URNs of all that is made for a service, those that it need not have with `**`: Pulumi refuses a target that is
    not there, unless it is a pattern."""
    start = f"urn:pulumi:{stack_name}::{project}::"
    dynamic, ray_service = f"{start}pulumi-python:dynamic/{platform}", "tpu-ray:index:RayService"
    ready = f"{start}**:Ready::{service.name}"
    if platform == "local":
        waited_for = service.model.removeprefix(_JOB) if service.model.startswith(_JOB) else None
        finished = (f"{dynamic}:JobFinished::{waited_for}",) if waited_for else ()
        return (*finished, f"{dynamic}:ServeApp::{service.name}", ready)
    return (
        f"{start}{ray_service}::{service.name}",
        f"{start}{ray_service}$kubernetes:ray.io/v1:RayService::{service.name}",
        ready,
        f"{start}**:Gone::{service.name}",
        # What stands around its pods; the child of a component has the component's name.
        *(
            f"{start}tpu-ray:index:{around}**::service-{service.name}"
            for around in ("NetworkPolicy", "DisruptionBudget")
        ),
    )

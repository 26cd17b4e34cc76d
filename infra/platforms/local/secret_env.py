"""Variables whose values are secrets, on this machine: they come from the environment, and are written down nowhere."""

import os
from collections.abc import Iterator, Mapping

import psutil
import pulumi

from infra.platforms.local.cluster import status
from infra.platforms.local.nodes import inherited
from infra.stack import StackSpec


def tell_lacking(stack_name: str, stack: StackSpec) -> None:
    """Say, in a running Pulumi program, which variables the processes will not have."""
    wanted = list(_wanted(stack))
    if not wanted:
        return
    there, where = _environment(stack_name)
    for key, name in wanted:
        if name not in there:
            pulumi.log.warn(f"{key}: {name} is not {where}; export it, `tpu-ray destroy -s {stack_name}`, `up` again")


def _wanted(stack: StackSpec) -> Iterator[tuple[str, str]]:
    yield from (
        (f"tpu-ray:services[{number}].secret_env.{name}", name)
        for number, service in enumerate(stack.services)
        for name in service.secret_env
    )
    yield from (
        (f"tpu-ray:jobs[{number}].secret_env.{name}", name)
        for number, job in enumerate(stack.jobs)
        for name in job.secret_env
    )


def _environment(stack_name: str) -> tuple[Mapping[str, str], str]:
    """What the cluster's processes have, or will have once they are started here."""
    now = status(stack_name)
    if now.alive and now.state is not None:
        try:
            return psutil.Process(now.state.nodes[0].identity.pid).environ(), "in the cluster that runs"
        except psutil.Error:
            pass
    return inherited(os.environ), "in the environment of `up`, or not passed on"

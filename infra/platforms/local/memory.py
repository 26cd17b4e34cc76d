"""How much memory a stack's cluster takes. Pure, but for the one function that asks the machine."""

import psutil

from infra.platforms.errors import PlatformError
from infra.platforms.local.spec import ClusterSpec

HEAD_STORE_MIB = 300
HOST_STORE_MIB = 100
"""Shared memory for objects; Ray takes at least 75 MiB."""

HEAD_GIB = 1.6
HOST_GIB = 0.35
WORK_GIB = 0.9
"""Proportional memory (PSS) of Ray 2.60: a head with dashboard and Serve took 1.2, an idle host 0.33. `WORK_GIB` allows
for the JAX process of a host and the Ray worker around it."""


def estimate_gib(spec: ClusterSpec) -> float:
    """Memory that the cluster takes with one JAX process on every host, in GiB."""
    hosts = len(spec.hosts)
    stores_gib = (HEAD_STORE_MIB + hosts * HOST_STORE_MIB) / 1024
    return HEAD_GIB + hosts * (HOST_GIB + WORK_GIB) + stores_gib


def require_memory(spec: ClusterSpec, available_gib: float | None = None) -> None:
    """Refuse a stack that does not fit, before anything of it runs.

    Raises:
        PlatformError: the estimate is above `tpu-ray:platform.memory_gib`, or above what the machine has free.
    """
    free_gib = psutil.virtual_memory().available / 2**30 if available_gib is None else available_gib
    need_gib, hosts = estimate_gib(spec), len(spec.hosts)
    need = f"{need_gib:.1f} GiB for the head and {hosts} emulated host{'s' if hosts != 1 else ''}"
    if need_gib > spec.memory_gib:
        raise PlatformError(
            "the stack needs more memory than it may take",
            key="tpu-ray:platform.memory_gib",
            wanted=need,
            found=f"{spec.memory_gib:g} GiB allowed",
            next_step=f"set it to {int(need_gib) + 1}, or make slices fewer or smaller in `tpu-ray:pools`",
        )
    if need_gib > free_gib:
        raise PlatformError(
            "this machine has too little free memory for the stack",
            key="tpu-ray:pools",
            wanted=need,
            found=f"{free_gib:.1f} GiB available",
            next_step="end other programs, or make slices fewer or smaller",
        )

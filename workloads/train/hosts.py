"""Whether the processes of a job are the hosts of one slice.

On CPU a job that is spread over two slices works; on TPU it hangs. So it is refused on both.
"""

import os
from dataclasses import dataclass

import jax
import numpy as np
from jax.experimental import multihost_utils

from workloads.spec.slices import Slice

NAME_BYTES = 128


class NotOneSlice(RuntimeError):
    """The processes do not sit on the hosts of one whole slice."""


@dataclass(frozen=True)
class Host:
    """Where one process runs, as the TPU environment of its host says."""

    slice_name: str
    worker_id: int
    pid: int = 0

    @classmethod
    def here(cls) -> "Host":
        return cls(os.environ.get("TPU_NAME", ""), int(os.environ.get("TPU_WORKER_ID", "0")), os.getpid())


def gather_hosts() -> list[Host]:
    """The host of every process, in the order of `jax.process_index()`. All processes call it together."""
    mine = Host.here()
    name = mine.slice_name.encode()[:NAME_BYTES].ljust(NAME_BYTES, b"\0")
    packed = np.concatenate([np.frombuffer(name, np.uint8).astype(np.int32), [mine.worker_id, mine.pid]]).astype(
        np.int32
    )
    rows = np.asarray(multihost_utils.process_allgather(packed)).reshape(jax.process_count(), -1)
    return [
        Host(row[:-2].astype(np.uint8).tobytes().rstrip(b"\0").decode(), int(row[-2]), int(row[-1])) for row in rows
    ]


def check_hosts(hosts: list[Host], wanted: Slice) -> None:
    """Raise NotOneSlice unless these are the hosts 0..n-1 of one slice of the wanted shape."""
    names = sorted({host.slice_name for host in hosts})
    ids = sorted(host.worker_id for host in hosts)
    if len(hosts) != wanted.hosts or len(names) != 1 or ids != list(range(wanted.hosts)):
        raise NotOneSlice(
            f"wanted the {wanted.hosts} hosts of one {wanted.generation} {wanted.topology} slice; "
            f"found {len(hosts)} processes on slices {names} with worker ids {ids}"
        )


def check_devices(wanted: Slice) -> None:
    """Raise NotOneSlice unless JAX sees the slice's devices, on TPU unless the host is emulated."""
    emulated = os.environ.get("JAX_PLATFORMS", "").lower() == "cpu"
    if not emulated and jax.default_backend() != "tpu":
        raise NotOneSlice(
            f"wanted TPU devices, found backend {jax.default_backend()!r}; another process may hold the chips"
        )
    if jax.device_count() != wanted.devices:
        raise NotOneSlice(
            f"wanted the {wanted.devices} devices of a {wanted.generation} {wanted.topology} slice, "
            f"found {jax.device_count()} over {jax.process_count()} processes"
        )

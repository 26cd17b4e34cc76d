"""What a pod may ask of a TPU VM besides its chips."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """Size of one VM: virtual CPUs and memory in GiB."""

    vcpus: int
    memory_gib: int

    @property
    def pod_cpus(self) -> int:
        """CPUs that a pod asks for: half, because the node's own daemons and a sidecar need some of the rest."""
        return self.vcpus // 2

    @property
    def pod_memory_gib(self) -> int:
        """Memory that a pod asks for, in GiB: 70 %, which is below what GKE leaves allocatable on every size."""
        return self.memory_gib * 7 // 10


# vCPUs and memory: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus and .../plan-tpus.
# Where two pages of Google disagree (ct6e-standard-1t, tpu7x) the smaller number stands here.
MACHINES: dict[str, Machine] = {
    "ct4p-hightpu-4t": Machine(240, 407),
    "ct5lp-hightpu-1t": Machine(24, 48),
    "ct5lp-hightpu-4t": Machine(112, 192),
    "ct5lp-hightpu-8t": Machine(224, 384),
    "ct5p-hightpu-4t": Machine(208, 448),
    "ct6e-standard-1t": Machine(44, 176),
    "ct6e-standard-4t": Machine(180, 720),
    "ct6e-standard-8t": Machine(180, 1440),
    "tpu7x-standard-1t": Machine(56, 240),
    "tpu7x-standard-4t": Machine(224, 960),
}

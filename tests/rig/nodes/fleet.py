"""The machines of a cluster: one for each node that Google's side asks for."""

import json
import threading
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from tests.rig.cloud.machines import TPU_MACHINES
from tests.rig.gcp.values import Object
from tests.rig.nodes.machine import Machine, Size, remove_group
from tests.rig.nodes.network import add_address
from workloads.spec import Slice

Json = dict[str, Any]


class Fleet:
    """Machines by the names of their nodes.

    Args:
        folder: below which each has its disk.
        group: cgroup of them all.
        login: kubeconfig of their kubelets.
        images: tags that their registry has.
        buckets: folder in which each bucket is a folder.
    """

    def __init__(self, folder: Path, group: str, login: Path, images: Sequence[str], buckets: Path) -> None:
        self._folder, self._group, self._login = folder, group, login
        self._images, self._buckets = tuple(images), buckets
        self._made = 0
        self._machines: dict[str, Machine] = {}
        self._ending: list[threading.Thread] = []
        self._one = threading.Lock()

    def __getitem__(self, name: str) -> Machine:
        return self._machines[name]

    def start(self, node: Object) -> None:
        """Start the machine of a node. It counts as running from the beginning."""
        with self._one:
            machine = self._machine(json.loads(json.dumps(node)), self._made)
            self._made += 1
            self._machines[machine.name] = machine
        machine.boot()

    def stop(self, name: str, grace_s: float) -> None:
        """Let the machine's pods end for so long, then switch it off; it returns at once."""
        thread = threading.Thread(target=self._stop, args=(name, grace_s), name=f"stop-{name}")
        with self._one:
            self._ending.append(thread)
        thread.start()

    def running(self) -> Set[str]:
        """Those that were started and are not gone."""
        with self._one:
            return {name for name, machine in self._machines.items() if machine.on}

    def scrap(self) -> None:
        """End all and take away what they left."""
        for thread in self._ending:
            thread.join()
        for machine in self._machines.values():
            machine.scrap()
        self._machines.clear()
        remove_group(self._group)

    def _stop(self, name: str, grace_s: float) -> None:
        machine = self._machines[name]
        machine.shut_down(grace_s)
        machine.scrap()
        with self._one:
            self._machines.pop(name)

    def _machine(self, node: Json, number: int) -> Machine:
        name, labels = node["metadata"]["name"], node["metadata"]["labels"]
        return Machine(
            name=name,
            folder=self._folder / str(number),
            address=add_address(number),
            group=f"{self._group}/{number}",
            size=_size(node["status"]),
            labels={key: value for key, value in labels.items() if key != "kubernetes.io/hostname"},
            taints=node["spec"]["taints"],
            provider_id=node["spec"]["providerID"],
            login=self._login,
            images=self._images,
            shape=_shape(labels),
            buckets=self._buckets,
        )


def _size(status: Json) -> Size:
    all_of_it, for_pods = status["capacity"], status["allocatable"]
    cpus, memory_gib = int(all_of_it["cpu"]), _gib(all_of_it["memory"])
    return Size(
        cpus=cpus,
        memory_gib=memory_gib,
        kept_cpus=cpus - int(for_pods["cpu"]),
        kept_gib=memory_gib - _gib(for_pods["memory"]),
        pods=int(all_of_it["pods"]),
    )


def _gib(quantity: str) -> int:
    return int(quantity.removesuffix("Gi"))


def _shape(labels: Mapping[str, str]) -> Slice | None:
    """The slice that a host is part of; None for a machine without chips."""
    machine_type = labels["node.kubernetes.io/instance-type"]
    machine = TPU_MACHINES.get(machine_type)
    if machine is None:
        return None
    topology = labels["cloud.google.com/gke-tpu-topology"]
    return Slice(generation=machine.generation, topology=topology, machine_type=machine_type)

"""Whether a pod fits a node, and why not in the scheduler's words.

k8s.io/kubernetes 1.34, pkg/scheduler/framework/plugins: tainttoleration, nodeaffinity and noderesources, in the order
in which its filters are asked; the first that refuses is quoted. Affinity between pods is not looked at.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Json = Mapping[str, Any]
UNITS = {
    "": Decimal(1),
    "n": Decimal(10) ** -9,
    "u": Decimal(10) ** -6,
    "m": Decimal(10) ** -3,
    **{unit: Decimal(1000) ** (power + 1) for power, unit in enumerate("kMGTPE")},
    **{f"{unit}i": Decimal(1024) ** (power + 1) for power, unit in enumerate("KMGTPE")},
}
NO_MATCH = "node(s) didn't match Pod's node affinity/selector"
REPELLING = ("NoSchedule", "NoExecute")


def quantity(written: str | int | float) -> Decimal:
    """A number as Kubernetes writes it: `500m`, `16Gi`, `4`."""
    found = re.fullmatch(r"([0-9.]+(?:[eE][+-]?\d+)?)([numkKMGTPE]?i?)", str(written))
    if found is None or found[2] not in UNITS:
        raise ValueError(f"{written!r} is no quantity")
    return Decimal(found[1]) * UNITS[found[2]]


def requests(pod: Json) -> dict[str, Decimal]:
    """What a pod asks of its node, with its place among the node's pods."""
    spec = pod["spec"]
    total: dict[str, Decimal] = {}
    inits = spec.get("initContainers", [])
    # One that never ends, a sidecar, runs beside the others.
    for container in (*spec["containers"], *(each for each in inits if each.get("restartPolicy") == "Always")):
        for name, amount in _asked(container):
            total[name] = total.get(name, Decimal(0)) + amount
    for container in inits:
        for name, amount in _asked(container):
            total[name] = max(total.get(name, Decimal(0)), amount)
    return {**total, "pods": Decimal(1)}


def _asked(container: Json) -> Iterator[tuple[str, Decimal]]:
    resources = container.get("resources", {})
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return ((name, quantity(amount)) for name, amount in asked.items())


@dataclass
class Room:
    """What a node has left."""

    labels: Mapping[str, str]
    taints: list[Json]
    free: dict[str, Decimal]

    @classmethod
    def of(cls, node: Json) -> "Room":
        """An empty node."""
        free = {name: quantity(amount) for name, amount in node["status"].get("allocatable", {}).items()}
        return cls(node["metadata"].get("labels", {}), node.get("spec", {}).get("taints") or [], free)

    def put(self, pod: Json) -> None:
        """Let it have what it asks for."""
        for name, amount in requests(pod).items():
            self.free[name] = self.free.get(name, Decimal(0)) - amount

    def why_not(self, pod: Json) -> list[str]:
        """Why the pod does not fit; empty where it does."""
        tolerations = pod["spec"].get("tolerations", [])
        for taint in self.taints:
            if taint["effect"] in REPELLING and not any(_tolerates(one, taint) for one in tolerations):
                return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
        if not self._selected(pod["spec"]):
            return [NO_MATCH]
        short = [name for name, amount in requests(pod).items() if amount > self.free.get(name, Decimal(0))]
        return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]

    def _selected(self, spec: Json) -> bool:
        if any(self.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
            return False
        node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = node.get("requiredDuringSchedulingIgnoredDuringExecution")
        if required is None:
            return True
        return any(
            all(self._matches(each) for each in term.get("matchExpressions", []))
            for term in required["nodeSelectorTerms"]
            if term.get("matchExpressions")
        )

    def _matches(self, expression: Json) -> bool:
        there, values = self.labels.get(expression["key"]), expression.get("values", [])
        match expression["operator"]:
            case "In":
                return there in values
            case "NotIn":
                return there not in values
            case "Exists":
                return there is not None
            case "DoesNotExist":
                return there is None
        raise ValueError(f"a node affinity's operator {expression['operator']} is not known here")


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")

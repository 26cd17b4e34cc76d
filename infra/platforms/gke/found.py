"""What a cluster says about one RayService: the object itself, its pods, and what happened to them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]
"""A Kubernetes object as the API server gives it."""
RAY_API = "/apis/ray.io/v1"
CLUSTER_LABEL, GROUP_LABEL = "ray.io/cluster", "ray.io/group"
SERVICE_LABEL = "ray.io/originated-from-cr-name"
"""On everything that KubeRay makes for a RayService: the RayService's name."""


@dataclass(frozen=True)
class Found:
    """One look at a RayService. `service` is None where it is gone."""

    service: Object | None
    clusters: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    events: tuple[Object, ...] = ()
    """Warnings, the newest first."""

    @property
    def status(self) -> Object:
        """The RayService's status."""
        found: Object = (self.service or {}).get("status") or {}
        return found

    def coming(self) -> Object:
        """The part of the status about the Ray cluster that is to serve: the new one while there is one."""
        parts: list[Any] = [self.status.get("pendingServiceStatus"), self.status.get("activeServiceStatus")]
        return next((part for part in parts if part and part.get("rayClusterName")), {})

    def pods_of(self, cluster: str) -> list[Object]:
        """The pods of a Ray cluster, the head first."""
        mine = [pod for pod in self.pods if pod["metadata"].get("labels", {}).get(CLUSTER_LABEL) == cluster]
        return sorted(mine, key=lambda pod: (not is_head(pod), pod["metadata"]["name"]))

    def warnings_about(self, kind: str, name: str) -> Iterator[Object]:
        """Warnings about one object, the newest first."""
        for event in self.events:
            about = event.get("involvedObject", {})
            if (about.get("kind"), about.get("name")) == (kind, name):
                yield event


def when(event: Object) -> datetime:
    """When an event was last seen."""
    stamp = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return moment(stamp)


def moment(stamp: str) -> datetime:
    """A time as Kubernetes writes it (RFC 3339)."""
    return datetime.fromisoformat(stamp)


def written_at(service: Object) -> datetime:
    """When the RayService's spec was last applied: what was said of it before is about another spec."""
    entries = service["metadata"].get("managedFields", [])
    applied = [entry["time"] for entry in entries if entry.get("operation") == "Apply" and not entry.get("subresource")]
    return moment(max(applied, default=service["metadata"]["creationTimestamp"]))


def is_head(pod: Object) -> bool:
    """Whether it is the head of its Ray cluster."""
    return bool(pod["metadata"].get("labels", {}).get("ray.io/node-type") == "head")

"""The logs of a Serve application's replicas."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from infra.platforms.ray_logs import Lines, last_lines, log_path
from infra.platforms.ray_rest import RayRest
from infra.platforms.state_seen import LogLine

APPLICATIONS = "/api/serve/applications/"
LOOK_EVERY_S = 5.0


def replicas(application: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(replica, node id, log file) of every replica that has a log; of the dead ones where none lives."""
    for kind in ("replicas", "recent_dead_replicas"):
        found = [
            (str(one["replica_id"]), str(one["node_id"]), str(one["log_file_path"]).lstrip("/"))
            for deployment in application.get("deployments", {}).values()
            for one in deployment.get(kind) or []
            if one.get("log_file_path") and one.get("node_id")
        ]
        if found:
            yield from found
            return


def replica_output(ray: RayRest, service: str, lines: int, follow: bool) -> Iterator[LogLine]:
    """The last lines of each replica, and with `follow` all that come, also of replicas that come, without end."""
    if not follow:
        for replica, node, file in _replicas(ray, service):
            yield from last_lines(ray, replica, node, file, lines)
        return
    with Lines() as reading:
        looked = 0.0
        while True:
            if time.monotonic() - looked > LOOK_EVERY_S:
                looked = time.monotonic()
                for replica, node, file in _replicas(ray, service):
                    if replica not in reading.sources:
                        path = log_path(node, file, lines, follow=True)
                        reading.follow(replica, lambda path=path: ray.stream(path))  # type: ignore[misc]
            line = reading.read(0.5)
            if line is not None:
                yield line


def _replicas(ray: RayRest, service: str) -> list[tuple[str, str, str]]:
    application = ray.get(APPLICATIONS).get("applications", {}).get(service) or {}
    return list(replicas(application))

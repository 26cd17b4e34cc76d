"""Whether this machine has room for a cluster. Asked before anything of the one that it follows is ended."""

import psutil

from infra.platforms.local import processes
from infra.platforms.local.memory import require_memory
from infra.platforms.local.ports import require_free
from infra.platforms.local.spec import ClusterSpec
from infra.platforms.local.state import ClusterState

HTTP_PORT = "tpu-ray:platform.http_port"
DASHBOARD_PORT = "tpu-ray:platform.dashboard_port"


def require_room(spec: ClusterSpec, old: ClusterState | None) -> None:
    """Refuse a cluster for which there is no room; what `old` holds now counts as free.

    Raises:
        PlatformError: memory is short, or a port is taken by something else.
    """
    ours = processes.members(old.identities, old.session) if old else ()
    require_memory(spec, _available_gib(ours))
    require_free(spec.dashboard_port, DASHBOARD_PORT, ours)
    require_free(spec.http_port, HTTP_PORT, ours)


def require_http_port(state: ClusterState) -> None:
    """Refuse to serve where something else listens: Serve would share the port without a word (SO_REUSEPORT).

    Raises:
        PlatformError: the port of a cluster that served nothing yet was taken since it started.
    """
    require_free(state.spec.http_port, HTTP_PORT, processes.members(state.identities, state.session))


def _available_gib(ours: tuple[psutil.Process, ...]) -> float:
    """Free memory in GiB if these processes were not there."""
    own = 0
    for process in ours:
        try:
            own += process.memory_info().rss - process.memory_info().shared
        except psutil.NoSuchProcess:
            continue
    return float(psutil.virtual_memory().available + own) / 2**30

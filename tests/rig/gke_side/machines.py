"""The emulated machines that run the nodes."""

from collections.abc import Set
from typing import Protocol

from tests.rig.gcp.values import Object


class Machines(Protocol):
    """Machines by the names of their nodes. Calls come from several threads at once."""

    def start(self, node: Object) -> None:
        """Start the machine of a node, whose kubelet registers it; from now on it counts as running."""

    def stop(self, name: str, grace_s: float) -> None:
        """Shut a machine down: its pods have so many seconds to end, then it is gone. It returns at once,
        or all that Google does waits for it."""

    def running(self) -> Set[str]:
        """Those that were started and are not gone, be it by a stop or by a crash."""

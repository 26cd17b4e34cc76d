"""For Pulumi programs of your own: `from tpu_ray import SlicePool`.

The distribution brings the packages `infra` and `workloads` along; a program beside it must not have folders of these
names, which Python would take first.
"""

import importlib.util
from pathlib import Path

try:
    import pulumi
except ModuleNotFoundError as missing:
    raise ImportError("tpu_ray needs Pulumi and its providers: install `tpu-ray[infra]`") from missing


class ForeignPackageError(ImportError, pulumi.RunError):
    """Python finds another package under the name of one of ours. A Pulumi program ends with the text alone."""


_HOME = Path(__file__).resolve().parents[1]
for _name in ("infra", "workloads"):
    _found = importlib.util.find_spec(_name)
    # A single module has no places, but an origin.
    _places = [] if _found is None else _found.submodule_search_locations or [str(_found.origin)]
    if _HOME / _name not in [Path(place).resolve() for place in _places]:
        raise ForeignPackageError(
            f"tpu-ray needs its own package {_name}, and Python finds another one: {', '.join(_places)}; "
            "rename that one, or run the program from elsewhere"
        )

from infra.components import (  # noqa: E402
    Cluster,
    ClusterArgs,
    ExistingCluster,
    ExistingClusterArgs,
    Network,
    NetworkArgs,
    NodeAccount,
    NodeAccountArgs,
    Queue,
    QueueArgs,
    Registry,
    RegistryArgs,
    SlicePool,
    SlicePoolArgs,
    Storage,
    StorageArgs,
    Workspace,
    WorkspaceArgs,
)
from infra.components.slice_pool import Capacity  # noqa: E402

__all__ = [
    "Capacity",
    "Cluster",
    "ClusterArgs",
    "ExistingCluster",
    "ExistingClusterArgs",
    "Network",
    "NetworkArgs",
    "NodeAccount",
    "NodeAccountArgs",
    "Queue",
    "QueueArgs",
    "Registry",
    "RegistryArgs",
    "SlicePool",
    "SlicePoolArgs",
    "Storage",
    "StorageArgs",
    "Workspace",
    "WorkspaceArgs",
]

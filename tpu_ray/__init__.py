"""For Pulumi programs of your own: `from tpu_ray import SlicePool`.

The distribution brings the packages `infra` and `workloads` along; a program beside it must not have folders of these
names, which Python would take first.
"""

import importlib.util
from pathlib import Path

_HOME = Path(__file__).resolve().parents[1]
for _name in ("infra", "workloads"):
    _found = importlib.util.find_spec(_name)
    _places = [Path(place).resolve() for place in (_found and _found.submodule_search_locations) or ()]
    if _HOME / _name not in _places:
        raise ImportError(
            f"tpu-ray needs its own package {_name}, and Python finds another one: {', '.join(map(str, _places))}; "
            "rename that folder, or run the program from elsewhere"
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

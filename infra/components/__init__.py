"""What a stack is made of on Google Cloud: one Pulumi component per file. They write down what the plan says.

Arguments are `TypedDict`s, so that the same components serve a Python program and, through `PulumiPlugin.yaml`, other
languages. What decides how many resources there are is a plain value, never an output: a preview knows it.
"""

from infra.components.cluster import Cluster, ClusterArgs
from infra.components.existing_cluster import ExistingCluster, ExistingClusterArgs
from infra.components.network import Network, NetworkArgs
from infra.components.node_account import NodeAccount, NodeAccountArgs
from infra.components.queue import Queue, QueueArgs
from infra.components.registry import Registry, RegistryArgs
from infra.components.slice_pool import SlicePool, SlicePoolArgs
from infra.components.storage import Storage, StorageArgs
from infra.components.workspace import Workspace, WorkspaceArgs

__all__ = [
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

"""What a local cluster consists of, from the stack file. Pure."""

import json
from dataclasses import dataclass, replace
from typing import cast

from infra.stack import StackSpec
from workloads.spec import Slice


@dataclass(frozen=True)
class EmulatedHost:
    """One host of one slice: one `ray start` process."""

    pool: str
    index: int
    """Number of the slice within its pool."""
    worker_id: int
    slice: Slice

    @property
    def slice_name(self) -> str:
        return f"{self.pool}-{self.index}"

    @property
    def role(self) -> str:
        """Unique name of the host within the cluster, e.g. `train-0.3`."""
        return f"{self.slice_name}.{self.worker_id}"


@dataclass(frozen=True)
class LocalPool:
    """A pool with every slice that it may have: nothing is added on demand on one machine."""

    name: str
    slice: Slice
    slices: int

    def hosts(self) -> tuple[EmulatedHost, ...]:
        return tuple(
            EmulatedHost(self.name, index, worker_id, self.slice)
            for index in range(self.slices)
            for worker_id in range(self.slice.hosts)
        )


@dataclass(frozen=True)
class ClusterSpec:
    """Everything that decides which processes a stack's cluster has."""

    stack: str
    http_port: int
    dashboard_port: int
    memory_gib: float
    pools: tuple[LocalPool, ...]

    @property
    def hosts(self) -> tuple[EmulatedHost, ...]:
        return tuple(host for pool in self.pools for host in pool.hosts())

    def same_head(self, other: "ClusterSpec") -> bool:
        """Whether a cluster of `other` can become this one without a new head."""
        return (self.stack, self.http_port, self.dashboard_port) == (other.stack, other.http_port, other.dashboard_port)

    def kept_in(self, other: "ClusterSpec") -> "ClusterSpec":
        """What stays as it is when a cluster of `self` becomes one of `other`: slices of the same pool and shape.

        A host's role alone says nothing: `single-0.0` is there whatever the topology.
        """
        after = {pool.name: pool for pool in other.pools}
        pools = tuple(
            replace(pool, slices=min(pool.slices, after[pool.name].slices))
            for pool in self.pools
            if pool.name in after and after[pool.name].slice == pool.slice
        )
        return replace(self, pools=pools)

    def to_json(self) -> str:
        return json.dumps(
            {
                "stack": self.stack,
                "http_port": self.http_port,
                "dashboard_port": self.dashboard_port,
                "memory_gib": self.memory_gib,
                "pools": [
                    {"name": pool.name, "slice": pool.slice.model_dump(), "slices": pool.slices} for pool in self.pools
                ],
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> "ClusterSpec":
        raw = json.loads(text)
        pools = tuple(LocalPool(p["name"], Slice.model_validate(p["slice"]), int(p["slices"])) for p in raw["pools"])
        return cls(
            stack=cast(str, raw["stack"]),
            http_port=int(raw["http_port"]),
            dashboard_port=int(raw["dashboard_port"]),
            memory_gib=float(raw["memory_gib"]),
            pools=pools,
        )

    @classmethod
    def of(cls, stack_name: str, stack: StackSpec) -> "ClusterSpec":
        """The cluster of a stack whose platform is `local`. A pool of `{min, max}` slices gets `max` of them."""
        platform = stack.platform
        if platform.kind != "local":
            raise ValueError(f"the platform of stack {stack_name} is {platform.kind}, not local")
        pools = tuple(LocalPool(pool.name, pool.slice, pool.slices.max) for pool in stack.pools)
        return cls(stack_name, platform.http_port, platform.dashboard_port, float(platform.memory_gib), pools)

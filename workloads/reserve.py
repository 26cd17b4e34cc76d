"""Take one whole slice of one pool, or say why there is none.

Ray's own helpers are not enough for this (observed with Ray 2.60): `get_num_ready_tpu_slices` counts busy slices as
ready, a free head resource does not mean a free slice, and the groups of single-host shapes carry no label, so that
they land on a host of a larger slice. So the slice is chosen here, by labels and by what is free, and named to Ray.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from workloads.slices_seen import SeenSlice, describe, look
from workloads.spec import Slice
from workloads.spec.pools import pool_resource

_TRY_S = 10.0
"""How long a chosen slice may take to be granted; what looked free a moment ago may be taken by another."""
_POLL_S = 1.0
_POOL_SHARE = 0.001
"""What a bundle takes of its pool's resource: enough to name the pool, so little that it never runs out."""


class SliceUnavailable(RuntimeError):
    """No slice of the pool became free in time. The text says what was wanted, what is there, and what to do."""


@dataclass
class ReservedSlice:
    """A slice that is held until `release`, or until the process that reserved it ends.

    Bundle i of `group` is the host with TPU worker id i: `{"CPU": 1, "TPU": chips_per_host}`.
    """

    name: str
    """Value of the label `ray.io/tpu-slice-name`."""
    slice: Slice
    pool: str
    group: PlacementGroup
    node_ids: tuple[str, ...]
    """Ray node ids in the order of the bundles."""
    head: PlacementGroup | None = None
    """Holds the slice's head resource, where the main group does not."""

    def release(self) -> None:
        """Give the slice back. Doing it twice is no mistake."""
        for group in (self.group, self.head):
            if group is not None:
                remove_placement_group(group)


def reserve_slice(slice: Slice, pool: str, timeout_s: float, holder: str = "") -> ReservedSlice:
    """Wait for a free slice of this shape and pool, and take all its hosts.

    While none is free, a group that asks for the head of such a slice stays in Ray's queue: that is what an autoscaler
    sees, and the one who gets it goes first.

    Args:
        slice: the shape.
        pool: the pool's name; its hosts carry the Ray resource `pool:<name>`.
        timeout_s: how long to wait.
        holder: who takes it, e.g. `service demo`; shown to others who wait for it.

    Raises:
        SliceUnavailable: the time is over.
    """
    deadline = time.monotonic() + timeout_s
    ticket: PlacementGroup | None = None
    kept = False
    try:
        while True:
            mine = _node_of(ticket)
            for seen in _candidates(look(slice, pool), mine):
                head = ticket if seen.hosts[0].node_id == mine else None
                left_s = max(1.0, deadline - time.monotonic())
                group = _try(slice, pool, seen, min(_TRY_S, left_s), holder, with_head=head is None)
                if group is not None:
                    kept = head is not None
                    ids = tuple(host.node_id for host in seen.hosts)
                    return ReservedSlice(seen.name, slice, pool, group, ids, head)
            if time.monotonic() >= deadline:
                raise SliceUnavailable(_unavailable(slice, pool, timeout_s, look(slice, pool)))
            if ticket is None:
                ticket = placement_group(
                    [{slice.ray_head_resource: 1, pool_resource(pool): _POOL_SHARE}], name=_name(holder, "waits")
                )
            time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))
    finally:
        if ticket is not None and not kept:
            remove_placement_group(ticket)


def _try(
    slice: Slice, pool: str, seen: SeenSlice, wait_s: float, holder: str, with_head: bool
) -> PlacementGroup | None:
    """The group of all hosts of this slice, or None when it is not granted in time."""
    bundle: dict[str, float] = {"CPU": 1, "TPU": slice.chips_per_host, pool_resource(pool): _POOL_SHARE}
    bundles = [dict(bundle) for _ in range(slice.hosts)]
    if with_head:
        bundles[0][slice.ray_head_resource] = 1
    labels = [
        {"ray.io/tpu-slice-name": seen.name, "ray.io/tpu-worker-id": str(worker_id)} for worker_id in range(slice.hosts)
    ]
    group = placement_group(
        bundles, strategy="STRICT_SPREAD", name=_name(holder, "holds"), bundle_label_selector=labels
    )
    granted = False
    try:
        granted = group.wait(wait_s)
    finally:
        if not granted:
            remove_placement_group(group)
    return group if granted else None


def _candidates(slices: Sequence[SeenSlice], mine: str | None) -> list[SeenSlice]:
    """The slices worth trying, the one whose head is already held first."""
    free = [s for s in slices if s.intact and s.tpus_free and (s.head_free or s.hosts[0].node_id == mine)]
    return sorted(free, key=lambda s: s.hosts[0].node_id != mine)


def _node_of(ticket: PlacementGroup | None) -> str | None:
    """The node on which the ticket holds a head resource, once it does."""
    if ticket is None or not ticket.wait(0):
        return None
    nodes = ray.util.placement_group_table(ticket)["bundles_to_node_id"]
    return next(iter(nodes.values()), None)


def _unavailable(slice: Slice, pool: str, timeout_s: float, slices: Sequence[SeenSlice]) -> str:
    wanted = f"wanted: one free {slice.generation} {slice.topology} slice of pool {pool}, within {timeout_s:g} s"
    if not slices:
        found = "found: no such slice in this cluster"
        step = f"next: check `slices` of pool {pool}, quota and capacity, and that its hosts have joined Ray"
    else:
        found = "found: " + "; ".join(describe(seen, slice) for seen in slices)
        step = f"next: raise `slices` of pool {pool}, or end what holds them"
    return f"no slice for this workload. {wanted}. {found}. {step}."


def _name(holder: str, verb: str) -> str:
    # Ray refuses a second group of the same name.
    return f"{holder} {verb} {uuid.uuid4().hex[:8]}".strip()

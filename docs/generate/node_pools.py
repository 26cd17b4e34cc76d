"""Write docs/node-pools.md: what each kind of pool becomes at GKE, from infra/plan/node_pools.py.

Run: `python docs/generate/node_pools.py [--check]`.
"""

import sys
from pathlib import Path
from typing import get_args

from docs.generate.page import write_or_check
from infra.plan.node_pools import Fixed, NodePool, node_pools
from infra.stack import Capacity, StackError, parse_pool
from workloads.spec.generations import GENERATIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "node-pools.md"

HEAD = """\
<!-- Written by docs/generate/node_pools.py from infra/plan/node_pools.py. -->

# From pools to GKE's node pools

A pool of a stack file is slices of one shape. GKE knows node pools, and treats slices of one host and of several
differently:

- **Slices of one host** are the nodes of one node pool, `<pool>-0`. `slices: {min, max}` are its limits. More slices:
  one update in place.
- **A slice of several hosts** is a node pool of its own, `<pool>-0`, `<pool>-1`, ..., all of its hosts or none. More
  slices: more node pools, and nothing else changes. Up to `min` they have their size for good; the others have it when
  something asks for them.

The tables show a pool `p` with one slice at most. `compact` is GKE's placement policy with the topology; v7x has a
workload policy instead, one for each node pool. Every node pool lies in one zone, upgrades one host after the other
(there are no chips for a surge), and says its reservation also where there is none. Nothing declares the taint
`google.com/tpu`: GKE puts it there.

What is refused is refused by `tpu-ray check`, in the preview, and by the component `SlicePool` alike.
"""

COLUMNS = (
    "capacity",
    "node pool",
    "nodes",
    "placement",
    "spot",
    "flex start",
    "queued",
    "reservation",
    "runs",
    "repair",
)


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, table in GENERATIONS.items():
        for topology in ("2x2", "4x4") if table.flat else ("2x2x1", "2x2x2"):
            parts.append(_table(name, topology))
    return "\n".join(parts)


def _table(generation: str, topology: str) -> str:
    shape = parse_pool({"name": "p", "generation": generation, "topology": topology}, "p").slice
    disk = node_pools(parse_pool({"name": "p", "generation": generation, "topology": topology}, "p"), "z-z1-a")[0]
    lines = [
        f"## {generation} {topology}: {shape.hosts} host{'s' if shape.multi_host else ''}",
        "",
        f"`{shape.machine_type}`, {shape.chips_per_host} chips a host, boot disk `{disk.disk_type}`.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
        *(_row(generation, topology, capacity) for capacity in get_args(Capacity)),
        "",
    ]
    return "\n".join(lines)


def _row(generation: str, topology: str, capacity: str) -> str:
    raw: dict[str, object] = {"name": "p", "generation": generation, "topology": topology, "capacity": capacity}
    raw["slices"] = {"min": 0, "max": 1} if capacity in ("flex-start", "queued") else 1
    if capacity == "reservation":
        raw["reservation"] = "held"
    try:
        (made,) = node_pools(parse_pool(raw, "p"), "us-east5-a")
    except StackError as error:
        reason = error.problems[0].reason
        return "| " + " | ".join([f"`{capacity}`", f"refused: {reason}", *[""] * (len(COLUMNS) - 2)]) + " |"
    return "| " + " | ".join([f"`{capacity}`", *_cells(made)]) + " |"


def _cells(made: NodePool) -> list[str]:
    size = str(made.size.nodes) if isinstance(made.size, Fixed) else f"{made.size.least} to {made.size.most}"
    placement = f"compact, {made.topology}" if made.compact else "workload policy" if made.workload_policy else "none"
    return [
        f"`{made.name}`",
        size,
        placement,
        "yes" if made.spot else "",
        "yes" if made.flex_start else "",
        "yes" if made.queued else "",
        f"only `{made.reservation}`" if made.reservation else "none",
        f"{made.max_run_s // 86400} days" if made.max_run_s else "on",
        "by GKE" if made.auto_repair else "off",
    ]


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))

"""Rules about the names of node pools on GKE, which are made from the names of pools."""

from collections.abc import Iterator, Sequence

from infra.stack.model import PoolSpec
from infra.stack.problems import Problem
from infra.stack.translate import Entry

CPU_POOL = "cpu"
"""Name of the node pool without chips."""
LONGEST_NODE_POOL = 40
"""Characters that GKE takes for a node pool's name: ai-on-gke/tpu-provisioner, internal/cloud/gke.go."""


def node_pool_names(name: str, multi_host: bool, most: int) -> tuple[str, ...]:
    """The node pools of a pool of at most so many slices: one per slice of several hosts, else one for all.

    The first has one name for both, so that a change from one to the other replaces it, the old machines first.
    """
    return tuple(f"{name}-{number}" for number in range(most if multi_host else 1))


def node_pool_name_problems(pools: Sequence[Entry[PoolSpec]], cpu_pool: bool) -> Iterator[Problem]:
    """Names that GKE does not take, or that the pool without chips has. `cpu_pool`: whether there is one.

    Pools of one name are told elsewhere; here the first of them counts. Two names never give one node pool's: what
    stands behind the last dash is the number.
    """
    names = {entry.text("name") or "" for entry in pools}
    seen: set[str] = set()
    for entry in pools:
        name = entry.text("name")
        if name is None or name in seen or not entry.sound("name"):
            continue
        seen.add(name)
        if cpu_pool and name == CPU_POOL:
            yield Problem(
                key=f"{entry.key}.name",
                value=name,
                reason="the node pool of platform.cluster.cpu_nodes has this name",
                allowed=(f"any name but {CPU_POOL}",),
                nearest=_free(name, names),
            )
            continue
        if not entry.sound("generation", "topology", "machine_type", "slices"):
            continue
        assert entry.spec is not None
        mine = node_pool_names(name, entry.spec.slice.multi_host, entry.spec.slices.max)
        if len(mine[-1]) > LONGEST_NODE_POOL:
            yield _too_long(entry, name, mine[-1], names)


def _too_long(entry: Entry[PoolSpec], name: str, longest: str, taken: set[str]) -> Problem:
    most = LONGEST_NODE_POOL - (len(longest) - len(name))
    slices = f"{entry.key}.slices" + (".max" if isinstance(entry.raw.get("slices"), dict) else "")
    return Problem(
        key=f"{entry.key}.name",
        value=name,
        reason=f"{slices} makes node pools up to {longest}: {len(longest)} characters; GKE takes {LONGEST_NODE_POOL}",
        allowed=(f"at most {most} characters",),
        nearest=_free(name, taken, most),
    )


def _free(name: str, taken: set[str], most: int = 30) -> str:
    """A name like this one that is not taken, of at most so many characters."""
    ends = ("", *(f"-{number}" for number in range(2, len(taken) + 3)))
    return next(free for end in ends if (free := name[: most - len(end)].rstrip("-") + end) not in taken)

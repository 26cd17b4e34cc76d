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
    """The node pools of a pool of at most so many slices: one per slice of several hosts, else one for all."""
    return tuple(f"{name}-{number}" for number in range(most)) if multi_host else (name,)


def node_pool_name_problems(pools: Sequence[Entry[PoolSpec]], cpu_pool: bool) -> Iterator[Problem]:
    """Names that GKE does not take, or that two node pools would have. `cpu_pool`: whether one without chips is made.

    Pools of one name are told elsewhere; here the first of them counts.
    """
    made: dict[str, Entry[PoolSpec]] = {}
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
            yield _too_long(entry, name, mine[-1], names | set(made))
        other = next((made[node_pool] for node_pool in mine if node_pool in made), None)
        if other is not None:
            yield _one_name(entry, other, mine, _free(name, names | set(made)))
        else:
            made.update(dict.fromkeys(mine, entry))


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


def _one_name(entry: Entry[PoolSpec], other: Entry[PoolSpec], mine: tuple[str, ...], free: str) -> Problem:
    """`a` with slices of several hosts makes `a-0`, `a-1`, ...; a pool of single hosts called `a-1` makes `a-1`."""
    assert entry.spec is not None
    assert other.spec is not None
    theirs = node_pool_names(other.text("name") or "", other.spec.slice.multi_host, other.spec.slices.max)
    shared = next(name for name in mine if name in theirs)
    return Problem(
        key=f"{entry.key}.name",
        value=entry.text("name"),
        reason=f"{_makes('this pool', mine)}, and {other.key}.name {_makes(str(other.text('name')), theirs)}: "
        f"two node pools would be called {shared}",
        nearest=free,
    )


def _makes(who: str, names: tuple[str, ...]) -> str:
    span = f"node pool {names[0]}" if len(names) == 1 else f"node pools {names[0]} to {names[-1]}"
    return f"{who} makes {span}"


def _free(name: str, taken: set[str], most: int = 30) -> str:
    """A name like this one that is not taken, of at most so many characters."""
    ends = ("", *(f"-{number}" for number in range(2, len(taken) + 3)))
    return next(free for end in ends if (free := name[: most - len(end)].rstrip("-") + end) not in taken)

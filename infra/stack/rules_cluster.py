"""Rules about the cluster of a `gke` platform: one that is there already is not changed, versions know the slices."""

from collections.abc import Iterator, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform, PoolSpec
from infra.stack.plain import Plain, without_secrets
from infra.stack.problems import Problem
from infra.stack.ray import numbers
from infra.stack.rules_modes import LENT
from infra.stack.rules_network import RANGES, host_bits
from infra.stack.translate import Entry

Platform = Entry[LocalPlatform | GkePlatform]

GENERATION_VERSIONS = {"v6e": "1.31.1-gke.1846000", "v7x": "1.34.0-gke.2201000"}
"""The first versions of GKE with these machines: GoogleCloudPlatform/kubernetes-engine-samples, and
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpu-ironwood
"""
LENT_VERSION = "1.33.0-gke.1712000"
"""The first with flex-start and queued provisioning for TPUs: https://cloud.google.com/kubernetes-engine/docs/concepts/dws"""
RAY_VERSION = "1.30.0-gke.1747000"
"""The first with the Ray operator add-on."""


def makes_cluster(entry: Platform) -> bool:
    """Whether the stack makes its cluster. Where one is named, though wrongly, it does not."""
    return _adopted(entry) is None


def makes_node_pools(entry: Platform) -> bool:
    """Whether the stack makes node pools: not in a cluster of which only the credentials are given."""
    return _adopted(entry) != "kubeconfig"


def cluster_problems(entry: Platform) -> Iterator[Problem]:
    """What is wrong between the keys of `cluster`, and between them and the keys of the network."""
    spec = entry.spec
    assert isinstance(spec, GkePlatform)
    adopted = _adopted(entry)
    if adopted is not None:
        yield from _not_ours(entry, adopted)
    key = f"{entry.key}.cluster"
    if entry.sound("cluster.context") and _given(entry, "context") is not None and _given(entry, "kubeconfig") is None:
        yield Problem(
            key=f"{key}.context",
            value=_given(entry, "context"),
            reason="this is a context of the file that cluster.kubeconfig names, and none is named",
            allowed=("only with cluster.kubeconfig",),
        )
    if adopted is not None:
        return
    nodes = spec.cluster.cpu_nodes
    if entry.sound("cluster.cpu_nodes.min", "cluster.cpu_nodes.max") and nodes.min > nodes.max:
        most = f"max: {nodes.max}" if entry.wrote("cluster.cpu_nodes.max") else f"max (absent: {nodes.max})"
        yield Problem(
            key=f"{key}.cpu_nodes.min",
            value=nodes.min,
            reason=f"more nodes at least than at most, cluster.cpu_nodes.{most}",
            allowed=(f"1 to {nodes.max}",),
            nearest=nodes.max,
        )
    for number, network in enumerate(spec.cluster.authorized_networks):
        if wrong := host_bits(f"{key}.authorized_networks[{number}]", network):
            yield wrong


def version_problems(entry: Platform, pools: Sequence[Entry[PoolSpec]]) -> Iterator[Problem]:
    """A version that does not have the machines or the capacity of a pool; the highest need is told."""
    spec = entry.spec
    assert isinstance(spec, GkePlatform)
    version = spec.cluster.version
    if version is None or not entry.sound("cluster.version"):
        return
    needs = [(RAY_VERSION, "the Ray operator add-on")]
    for pool in pools:
        generation = pool.text("generation") or ""
        if generation in GENERATION_VERSIONS:
            needs.append((GENERATION_VERSIONS[generation], f"{pool.key}.generation: {generation}"))
        if pool.spec is not None and pool.sound("capacity") and pool.spec.capacity in LENT:
            needs.append((LENT_VERSION, f"{pool.key}.capacity: {pool.spec.capacity}"))
    # `1.33` alone is its newest release, so only as many numbers are compared as are written.
    written = numbers(version)
    missing = [need for need in needs if written < numbers(need[0])[: len(written)]]
    if missing:
        first, why = max(missing, key=lambda need: numbers(need[0]))
        yield Problem(
            key=f"{entry.key}.cluster.version",
            value=version,
            reason=f"{why} needs GKE {first} or newer",
            allowed=(f"{first} or newer",),
            nearest=".".join(first.split(".")[:2]),
        )


def _adopted(entry: Platform) -> str | None:
    """The key that names a cluster that is there already, or None."""
    return next((name for name in ("existing", "kubeconfig") if _given(entry, name) is not None), None)


def _given(entry: Platform, name: str) -> Plain:
    cluster = entry.raw.get("cluster")
    return cluster.get(name) if isinstance(cluster, dict) else None


def _not_ours(entry: Platform, adopted: str) -> Iterator[Problem]:
    """Keys that say how a cluster is made, beside the name of one that is there already."""
    inside = ["channel", "version", "authorized_networks", "cpu_nodes"]
    ranges = list(RANGES)
    if adopted == "kubeconfig":
        inside.insert(0, "location")
    else:
        # The second network is made beside the cluster's own.
        ranges.remove("second_nics")
    for part in [*(f"cluster.{name}" for name in inside), *(f"network.{name}" for name in ranges)]:
        if not entry.wrote(part) or not entry.sound(part):
            continue
        outer, name = part.split(".")
        mapping = entry.raw[outer]
        assert isinstance(mapping, dict)
        yield Problem(
            key=f"{entry.key}.{part}",
            value=without_secrets(mapping[name]),
            reason=f"cluster.{adopted} names a cluster that is there already: neither it nor its network is changed",
            allowed=(f"only without cluster.{adopted}",),
        )

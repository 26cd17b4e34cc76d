"""Rules about address ranges: real ones, apart from each other, and large enough for what the stack may grow to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from infra.stack.gke import GkePlatform, NetworkSpec
from infra.stack.model import LocalPlatform, PoolSpec
from infra.stack.problems import Problem
from infra.stack.translate import Entry

PODS_PER_HOST = 15
"""Most pods on a TPU host, one workload and GKE's own: 32 addresses a host instead of 256 (xpk does the same)."""
ADDRESSES_PER_HOST, ADDRESSES_PER_CPU_NODE = 32, 256
"""Twice the most pods (15, and GKE's 110 on nodes without chips), rounded up to a power of two:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr
"""
KEPT_BY_GOOGLE = 4
"""Addresses of each subnetwork: https://docs.cloud.google.com/vpc/docs/subnets#unusable-ip-addresses-in-every-subnet"""
CONTROL_PLANE_BITS = 28
"""https://docs.cloud.google.com/kubernetes-engine/docs/how-to/legacy/network-isolation"""
MOST_SERVICE_BITS = 27
"""The smallest range of services: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/alias-ips"""
RANGES = tuple(NetworkSpec.model_fields)
_PRIVATE = tuple(IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
# https://docs.cloud.google.com/kubernetes-engine/docs/how-to/legacy/network-isolation: Docker's bridge has it.
_DOCKER = IPv4Network("172.17.0.0/16")


@dataclass(frozen=True)
class _Need:
    """Addresses that a range must hold, and how they add up."""

    addresses: int
    sum: str

    @property
    def bits(self) -> int:
        """The prefix of the smallest range that holds them."""
        return 32 - max(self.addresses - 1, 1).bit_length()


def range_problems(
    entry: Entry[LocalPlatform | GkePlatform], pools: Sequence[Entry[PoolSpec]], made: Sequence[str] = RANGES
) -> Iterator[Problem]:
    """What is wrong with the ranges of the networks that are made. At most one problem per range."""
    spec = entry.spec
    assert isinstance(spec, GkePlatform)
    ranges: dict[str, IPv4Network] = {}
    for name in made:
        if not entry.sound(f"network.{name}"):
            continue
        text = str(getattr(spec.network, name))
        network = IPv4Network(text, strict=False)
        if name == "control_plane" and network.prefixlen != CONTROL_PLANE_BITS:
            first = IPv4Network((network.network_address, CONTROL_PLANE_BITS), strict=False)
            reason = "the control plane has a range of 16 addresses"
            yield _problem(entry, name, reason, (f"a /{CONTROL_PLANE_BITS}",), str(first))
        elif wrong := host_bits(f"{entry.key}.network.{name}", text):
            yield wrong
        else:
            ranges[name] = network
    # Only hosts with a second interface take addresses of the second network, which else is not made.
    second = [pool for pool in pools if pool.spec is not None and pool.sound("second_nic") and pool.spec.second_nic]
    if not second and not entry.wrote("network.second_nics"):
        ranges.pop("second_nics", None)
    needs = _needs(entry, spec, pools, second)
    told = set()
    for name, network in list(ranges.items()):
        need = needs.get(name)
        if need is not None and network.num_addresses < need.addresses:
            told.add(name)
            close = ranges[name] = _free(network, need.bits, [ranges[other] for other in ranges if other != name])
            at = "" if entry.wrote(f"network.{name}") else f" (absent: {network})"
            reason = f"{need.sum} = {need.addresses} addresses; /{network.prefixlen}{at} holds {network.num_addresses}"
            allowed = (f"a /{need.bits} or larger",)
            yield _problem(entry, name, reason, allowed, str(close) if close.prefixlen == need.bits else None)
    yield from _overlaps(entry, ranges, needs, told)


def host_bits(key: str, text: str) -> Problem | None:
    """An address inside a range where the range's own address belongs."""
    network = IPv4Network(text, strict=False)
    if str(network) == text:
        return None
    reason = f"a range of /{network.prefixlen} begins at {network.network_address}: the bits behind the prefix are zero"
    return Problem(key=key, value=text, reason=reason, allowed=("a range such as 10.0.0.0/20",), nearest=str(network))


def _problem(
    entry: Entry[LocalPlatform | GkePlatform], name: str, reason: str, allowed: tuple[str, ...], close: str | None
) -> Problem:
    given = entry.raw.get("network")
    value = given.get(name) if isinstance(given, dict) else None
    return Problem(key=f"{entry.key}.network.{name}", value=value, reason=reason, allowed=allowed, nearest=close)


def _needs(
    entry: Entry[LocalPlatform | GkePlatform],
    spec: GkePlatform,
    pools: Sequence[Entry[PoolSpec]],
    second: Sequence[Entry[PoolSpec]],
) -> Mapping[str, _Need]:
    hosts, hosts_said = _hosts(pools)
    second_hosts, second_said = _hosts(second)
    # A node without chips is replaced by a new one when it is upgraded, so there may be one more.
    cpu = spec.cluster.cpu_nodes.max + 1 if entry.sound("cluster.cpu_nodes.max") else 2
    cpu_said = f"(cluster.cpu_nodes.max {cpu - 1} + 1 for upgrades)"
    kept = f"{KEPT_BY_GOOGLE} that Google keeps"
    return {
        "nodes": _Need(hosts + cpu + KEPT_BY_GOOGLE, f"{hosts_said} + {cpu_said} + {kept}"),
        "pods": _Need(
            hosts * ADDRESSES_PER_HOST + cpu * ADDRESSES_PER_CPU_NODE,
            f"{hosts_said} x {ADDRESSES_PER_HOST} + {cpu_said} x {ADDRESSES_PER_CPU_NODE}",
        ),
        "services": _Need(2 ** (32 - MOST_SERVICE_BITS), "GKE's smallest range of services"),
        "second_nics": _Need(second_hosts + KEPT_BY_GOOGLE, f"{second_said} + {kept}"),
    }


def _hosts(pools: Sequence[Entry[PoolSpec]]) -> tuple[int, str]:
    """TPU hosts of the pools at their largest, and the sum in words with the pools that have most of them."""
    parts: list[tuple[int, str]] = []
    for entry in pools:
        if entry.spec is not None and entry.sound("generation", "topology", "machine_type", "slices"):
            slices, hosts = entry.spec.slices.max, entry.spec.slice.hosts
            each = "1 host" if hosts == 1 else f"{hosts} hosts"
            parts.append((slices * hosts, f"{entry.key}.slices {slices} x {each}"))
    total = sum(hosts for hosts, _ in parts)
    largest = sorted(parts, key=lambda part: -part[0])[:3]
    more = total - sum(hosts for hosts, _ in largest)
    said = " + ".join([words for _, words in largest] + ([f"{more} hosts of other pools"] if more else []))
    return total, f"({said})" if said else "0 TPU hosts"


def _overlaps(
    entry: Entry[LocalPlatform | GkePlatform],
    ranges: Mapping[str, IPv4Network],
    needs: Mapping[str, _Need],
    told: set[str],
) -> Iterator[Problem]:
    """Ranges that share addresses: told once, at the one that the user wrote, or at the later of two."""
    moved = dict(ranges)
    for name in ranges:
        if name in told or not entry.wrote(f"network.{name}"):
            continue
        mine = moved[name]
        before = [
            other
            for other in ranges
            if other != name
            and moved[other].overlaps(mine)
            and (not entry.wrote(f"network.{other}") or RANGES.index(other) < RANGES.index(name))
        ]
        if not before:
            continue
        others = [other for other in moved if other != name]
        taken = [moved[other] for other in others]
        # A range as large as all that is private finds no place beside others: then the largest that does.
        least = needs[name].bits if name in needs else CONTROL_PLANE_BITS
        sizes = (_free(mine, bits, taken) for bits in range(mine.prefixlen, least + 1))
        close = next((found for found in sizes if found != mine), mine)
        moved[name] = close
        said = " and ".join(
            f"network.{other} ({'' if entry.wrote(f'network.{other}') else 'absent: '}{ranges[other]})"
            for other in before
        )
        reason = f"this range and {said} have addresses in common"
        yield _problem(entry, name, reason, ("a range of its own",), str(close) if close != mine else None)


def _free(wanted: IPv4Network, bits: int, taken: Sequence[IPv4Network]) -> IPv4Network:
    """The range of that size at or around `wanted` that no other overlaps, else the first private one that is free.

    `wanted` itself where there is none.
    """
    around = wanted.supernet(new_prefix=bits) if bits <= wanted.prefixlen else wanted
    if not any(around.overlaps(other) for other in taken):
        return around
    size = 2 ** (32 - bits)
    for block in _PRIVATE:
        start, end = int(block.network_address), int(block.broadcast_address) + 1
        while start + size <= end:
            here = IPv4Network((start, bits))
            hit = next((other for other in (*taken, _DOCKER) if here.overlaps(other)), None)
            if hit is None:
                return here
            # The next multiple of the size behind the range that is in the way.
            start = max(start + size, -(-(int(hit.broadcast_address) + 1) // size) * size)
    return wanted

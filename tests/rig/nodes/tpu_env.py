"""What a TPU host's device plugin gives a container: which chips there are, and their environment. Pure.

Google's plugin: https://github.com/ai-on-gke/tpu-device-plugin/tree/4626a9f459c06db8411bce7de0496f59967b7c20/pkg/tpu
(`manager.go`, `util/util.go`), with the flags that it has by default.
"""

from collections.abc import Iterable

from workloads.spec import Slice

VBAR_PORT = 8353
FIRST_METRICS_PORT = 8431
CHIPS_PER_NUMA_NODE = 2
"""Of a v7x host, whose four chips lie on two NUMA nodes. https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpu-ironwood"""
PART_BOUNDS = {1: (1, 1, 1), 2: (1, 2, 1), 4: (2, 2, 1)}
"""Chips along each side of a part of a host, by the number of its chips."""


class RequestError(ValueError):
    """A container asks for chips that the plugin does not give."""


def divisible(shape: Slice) -> bool:
    """Whether several containers may share a host's chips."""
    return shape.generation == "v7x"


def chip_ids(shape: Slice) -> tuple[str, ...]:
    """Names of a host's chips: device files, on v7x PCI slots."""
    pattern = {"v4": "accel{}", "v7x": "0000:00:0{}"}.get(shape.generation, "{}")
    first = 1 if shape.generation == "v7x" else 0
    return tuple(pattern.format(first + number) for number in range(shape.chips_per_host))


def numa_node(shape: Slice, chip: str) -> int | None:
    """The NUMA node that a chip lies on, where the plugin tells it."""
    return chip_ids(shape).index(chip) // CHIPS_PER_NUMA_NODE if divisible(shape) else None


def check_request(shape: Slice, chips: list[str], unhealthy: set[str]) -> None:
    """Raises RequestError, in the plugin's own words, where a container may not have these chips."""
    if not divisible(shape) and len(chips) != shape.chips_per_host:
        raise RequestError(
            f"invalid TPU chip count request, you must request all {shape.chips_per_host} chips on this node together"
        )
    if not 0 < len(chips) <= shape.chips_per_host:
        raise RequestError(
            f"invalid TPU chip count request: got {len(chips)}, but must request between 1 and "
            f"{shape.chips_per_host} chips"
        )
    for chip in chips:
        if chip not in chip_ids(shape):
            raise RequestError(f"invalid allocation request with non-existing device {chip}")
        if chip in unhealthy:
            raise RequestError(f"invalid allocation request with unhealthy device {chip}")
    if divisible(shape) and len(chips) == 2 and len({numa_node(shape, chip) for chip in chips}) > 1:
        raise RequestError(
            "invalid 2-chip request: requested devices are not NUMA aligned. 2-chip requests require topology-aware "
            "scheduling to be enabled on the node. Please review the Kubelet Topology Manager policies (e.g., "
            "'single-numa-node')"
        )
    if len(chips) != shape.chips_per_host and len(chips) not in PART_BOUNDS:
        raise RequestError(
            f"error initializing environment variables: invalid chip count for {accelerator_type(shape)[0]}: "
            f"{len(chips)}"
        )


def accelerator_type(shape: Slice) -> tuple[str, str]:
    """The plugin's word for a generation, and `TPU_ACCELERATOR_TYPE`: Ray's names, but for `tpu7x`."""
    version, _, number = shape.ray_pod_type.rpartition("-")
    version = "tpu7x" if version == "v7x" else version
    return version, f"{version}-{number}"


def environment(shape: Slice, host_ip: str, chips: list[str] | None = None) -> dict[str, str]:
    """What a container on one of the slice's hosts finds in its environment.

    Args:
        shape: the slice that the host belongs to.
        host_ip: the node's address.
        chips: those that the container asks for; None: all of the host.
    """
    asked = list(chip_ids(shape)) if chips is None else chips
    whole = len(asked) == shape.chips_per_host
    bounds = shape.compiler_host_bounds if whole else PART_BOUNDS[len(asked)]
    sides = (*shape.dims, 1)[:3]
    hosts = _joined(side // part for side, part in zip(sides, bounds, strict=True))
    wrap = _wrap(shape, sides)
    ports = range(FIRST_METRICS_PORT, FIRST_METRICS_PORT + shape.devices_per_host)
    env = {
        "TPU_SKIP_MDS_QUERY": "true",
        "TPU_RUNTIME_METRICS_PORTS": _joined(ports),
        "TPU_TOPOLOGY": shape.topology,
        "TPU_ACCELERATOR_TYPE": accelerator_type(shape)[1],
        "VBAR_CONTROL_SERVICE_URL": f"{host_ip}:{VBAR_PORT}",
        "TPU_TOPOLOGY_ALT": "false",
        "ALT": "false",
        "TPU_TOPOLOGY_WRAP": wrap,
        "WRAP": wrap,
        "HOST_BOUNDS": hosts,
        "TPU_HOST_BOUNDS": hosts,
        "CHIPS_PER_HOST_BOUNDS": _joined(bounds),
        "TPU_CHIPS_PER_HOST_BOUNDS": _joined(bounds),
    }
    if len(shape.dims) == 3 and min(shape.dims) >= 4:
        env["ENABLE_ICI_RESILIENCY"] = "true"
    if divisible(shape) and len(asked) > 1:
        nodes = {numa_node(shape, chip) for chip in asked}
        env["WORKLOAD_NIC_PREFERRED_NUMA"] = _joined(sorted(node for node in nodes if node is not None))
    if not shape.multi_host and not divisible(shape):
        # On v7x it would have to know of the other containers on the host.
        env |= {"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"}
    return env


def _wrap(shape: Slice, sides: tuple[int, ...]) -> str:
    """Along which sides the mesh closes to a ring: of cubes all, of flat slices those that span the pod."""
    cubes = len(shape.dims) == 3
    closed = [min(sides) >= 4] * 3 if cubes else [side == 16 for side in sides]
    return _joined(str(side).lower() for side in closed)


def _joined(values: Iterable[object]) -> str:
    return ",".join(str(value) for value in values)

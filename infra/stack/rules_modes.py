"""Rules about how a pool's machines are got: which keys of one pool exclude each other, and which need each other.

Sources: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus,
https://cloud.google.com/kubernetes-engine/docs/concepts/dws, and the preconditions of
GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool/main.tf.
"""

from collections.abc import Iterator, Sequence

from infra.stack import forms
from infra.stack.model import PoolSpec
from infra.stack.plain import Plain
from infra.stack.problems import Problem
from infra.stack.translate import Entry
from workloads.spec import ServiceSpec
from workloads.spec.nearest import nearest

LENT = ("flex-start", "queued")
"""Capacities whose machines come on demand only and are lent for a time."""
NOT_LENT_GENERATIONS = ("v4",)
"""Generations without flex-start and queued provisioning."""
SECOND_NIC_GENERATIONS = ("v6e", "v7x")
"""Generations whose hosts use a second network interface between slices."""


def mode_problems(entry: Entry[PoolSpec]) -> Iterator[Problem]:
    """Everything that is wrong between the keys of one pool, on any platform. At most one problem per key."""
    spec = entry.spec
    if spec is None:
        return
    if entry.sound("capacity"):
        taken = entry.raw.get("reservation") is not None
        if taken and spec.capacity != "reservation":
            yield _not_reserved(entry, spec)
        elif spec.capacity == "reservation" and not taken:
            yield Problem(
                key=f"{entry.key}.reservation",
                reason="capacity: reservation needs the name of the reservation",
                allowed=(forms.form_of(forms.RESERVATION).example,),
            )
        elif spec.capacity in LENT and entry.text("generation") in NOT_LENT_GENERATIONS:
            yield Problem(
                key=f"{entry.key}.capacity",
                value=spec.capacity,
                reason=f"generation: {entry.text('generation')} is sold neither by flex-start nor by queued",
                allowed=("on-demand", "spot", "reservation"),
                nearest="on-demand",
            )
        elif keeps_none(entry):
            yield from _kept_slices(entry, spec)
        if entry.raw.get("max_run_s") is not None and spec.capacity not in LENT and entry.sound("max_run_s"):
            yield Problem(
                key=f"{entry.key}.max_run_s",
                value=spec.max_run_s,
                reason=f"{said(entry, 'capacity', spec.capacity)} gives its machines no end",
                allowed=tuple(f"only with capacity: {capacity}" for capacity in LENT),
            )
    yield from _second_nic(entry, spec)


def keeps_none(entry: Entry[PoolSpec]) -> bool:
    """Whether the pool's capacity lets it keep no slices, so that `mode_problems` tells what its `min` must be."""
    lent = entry.spec is not None and entry.sound("capacity") and entry.spec.capacity in LENT
    told = entry.raw.get("reservation") is not None or entry.text("generation") in NOT_LENT_GENERATIONS
    return lent and not told


def queued_service_problems(
    services: Sequence[Entry[ServiceSpec]], pools: Sequence[Entry[PoolSpec]]
) -> Iterator[Problem]:
    """Services on a queued pool, whose nodes are made only for the ProvisioningRequest of a job (Kueue makes it)."""
    first: dict[str, Entry[PoolSpec]] = {}
    for entry in pools:
        first.setdefault(entry.text("name") or "", entry)
    others = tuple(name for name, entry in first.items() if name and not _queued(entry))
    for service in services:
        pool = first.get(service.text("pool") or "")
        if pool is None or not _queued(pool) or pool.text("generation") in NOT_LENT_GENERATIONS:
            continue
        yield Problem(
            key=f"{service.key}.pool",
            value=service.text("pool"),
            reason=f"{pool.key}.capacity is queued: such slices are made for a job and end with it, and a service "
            "needs its slice always; give it a pool of another capacity",
            allowed=others,
            nearest=nearest(service.text("pool") or "", others),
        )


def said(entry: Entry[PoolSpec], name: str, value: object) -> str:
    """A key of the entry with its value, in words that also fit where the user left it out."""
    return f"{name}: {value}" if entry.wrote(name) else f"{name} (absent: {value})"


def _queued(entry: Entry[PoolSpec]) -> bool:
    return entry.spec is not None and entry.sound("capacity") and entry.spec.capacity == "queued"


def _not_reserved(entry: Entry[PoolSpec], spec: PoolSpec) -> Problem:
    given = f"capacity: {spec.capacity} does" if entry.wrote("capacity") else "an absent capacity, on-demand, does"
    return Problem(
        key=f"{entry.key}.capacity",
        value=spec.capacity if entry.wrote("capacity") else None,
        reason=f"reservation names machines that are reserved, and {given} not take these",
        allowed=("reservation", f"{spec.capacity} without the key reservation"),
        nearest="reservation",
    )


def _kept_slices(entry: Entry[PoolSpec], spec: PoolSpec) -> Iterator[Problem]:
    """https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws: such pools begin with no node and scale."""
    if not entry.sound("slices") or spec.slices.min == 0:
        return
    most = spec.slices.max
    mapping = isinstance(entry.raw.get("slices"), dict)
    right: Plain = 0 if mapping else {"min": 0, "max": most}
    number = "a number is both min and max" if entry.wrote("slices") else "absent, min and max are 1"
    yield Problem(
        key=f"{entry.key}.slices.min" if mapping else f"{entry.key}.slices",
        value=spec.slices.min if mapping else entry.raw.get("slices"),
        reason=f"capacity: {spec.capacity} keeps no slice, it makes one when something asks for it"
        + ("" if mapping else f"; {number}"),
        allowed=("0",) if mapping else (f"{{min: 0, max: {most}}}",),
        nearest=right,
    )


def _second_nic(entry: Entry[PoolSpec], spec: PoolSpec) -> Iterator[Problem]:
    if not spec.second_nic or not entry.sound("second_nic"):
        return
    reason = None
    generation = entry.text("generation")
    if entry.sound("generation", "topology", "machine_type"):
        if generation not in SECOND_NIC_GENERATIONS:
            reason = f"generation: {generation} joins its slices over the first network interface"
        elif not spec.slice.multi_host:
            machine = f" on {spec.slice.machine_type}" if entry.wrote("machine_type") else ""
            reason = f"topology: {spec.topology}{machine} is a single host, and jobs join slices of several hosts only"
    if reason is not None:
        yield Problem(key=f"{entry.key}.second_nic", value=True, reason=reason, allowed=("false",), nearest=False)

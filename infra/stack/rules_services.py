"""Rules about services: the name fits DNS, the model can be found, the engine's shapes fit each other."""

import re
from collections.abc import Iterator, Mapping, Sequence

from infra.stack.problems import Problem
from infra.stack.rules_engines import engine_kind
from infra.stack.rules_pools import Pool, same_names
from infra.stack.translate import Entry
from workloads.spec import AppSpec, EngineSpec, JobSpec, ServiceSpec
from workloads.spec.hub import hub_model
from workloads.spec.nearest import nearest

LONGEST_NAME = 47
"""KubeRay's limit for the name of a RayService or RayJob: it appends six characters for the RayCluster's name, and more
for the names of services. https://github.com/ray-project/kuberay/blob/v1.5.1/ray-operator/controllers/ray/utils/constant.go
"""
LONGEST_MULTI_HOST_NAME = 35
"""The TPU webhook keeps the last 50 characters of `<name>-xxxxx-headless`; the operator keeps all of them. Hosts of a
slice find each other only where both are the same: 50 - len("-headless") - len("-xxxxx").
"""


def service_problems(
    entries: Sequence[Entry[ServiceSpec]], pools: Mapping[str, Pool], jobs: Sequence[Entry[JobSpec]]
) -> Iterator[Problem]:
    """Everything that is wrong with the services beyond their single keys."""
    yield from same_names(entries, "service")
    for entry in entries:
        yield from unknown_pool(entry, pools)
        yield from _name(entry, pools)
        yield from _model(entry, jobs)
        yield from _engine(entry)
        yield from _context_of_job(entry, jobs)
        yield from waiting_in_order(entry, "reserve_timeout_s", "ready_timeout_s")


def pool_of(entry: Entry[ServiceSpec] | Entry[JobSpec], pools: Mapping[str, Pool]) -> Pool | None:
    """The pool that the entry names, or None where there is no such pool."""
    return pools.get(entry.text("pool") or "")


def pool_meant(entry: Entry[ServiceSpec] | Entry[JobSpec], pools: Mapping[str, Pool]) -> str | None:
    """The pool that the entry names, or for a name that no pool has the one that was probably meant."""
    name, known = entry.text("pool"), tuple(pools)
    if name is None or name in pools:
        return name
    return nearest(name, known) or (known[0] if len(known) == 1 else None)


def unknown_pool(entry: Entry[ServiceSpec] | Entry[JobSpec], pools: Mapping[str, Pool]) -> Iterator[Problem]:
    """A pool that is not in the file. Where there are no pools at all, that is what is told."""
    name = entry.text("pool")
    if name is not None and pools and name not in pools:
        yield Problem(
            key=f"{entry.key}.pool",
            value=name,
            reason="there is no pool of this name",
            allowed=tuple(pools),
            nearest=pool_meant(entry, pools),
        )


def longest_name(pool: Pool | None) -> int:
    """How long the name of what runs on this pool may be."""
    return LONGEST_MULTI_HOST_NAME if pool and pool.slice and pool.slice.multi_host else LONGEST_NAME


def why_longest(most: int) -> str:
    """The reason for the limit that `longest_name` gave."""
    if most == LONGEST_NAME:
        return "so that Kubernetes takes the names that are derived from it"
    return "so that the hosts of a multi-host slice find each other by DNS"


def waiting_in_order(entry: Entry[ServiceSpec] | Entry[JobSpec], inner: str, outer: str) -> Iterator[Problem]:
    """A wait within a longer one that ends before it. Only where the user wrote both."""
    if not (entry.wrote(inner) and entry.wrote(outer) and entry.sound(inner, outer)):
        return
    part, whole = getattr(entry.spec, inner), getattr(entry.spec, outer)
    if part > whole:
        yield Problem(
            key=f"{entry.key}.{inner}",
            value=part,
            reason=f"this wait is part of {outer}, which ends before it ({whole})",
            allowed=(f"at most {whole}",),
            nearest=whole,
        )


def _name(entry: Entry[ServiceSpec], pools: Mapping[str, Pool]) -> Iterator[Problem]:
    name, most = entry.text("name"), longest_name(pool_of(entry, pools))
    if name is not None and len(name) > most:
        yield Problem(
            key=f"{entry.key}.name",
            value=name,
            reason=f"{len(name)} characters; at most {most} fit {why_longest(most)}",
            allowed=(f"at most {most} characters",),
            nearest=name[:most].rstrip("-"),
        )


_HUB = "hf:<organisation>/<name>[@<revision>]"
_FORMS = {
    "jax": ("package:<python package>", "job:<job name>", _HUB, "a path to a folder or .gguf file"),
    "vllm": (_HUB, "job:<job name>", "a path to a folder"),
}
_SCHEMES = {"jax": ("package", "job", "hf"), "vllm": ("hf", "job")}


def _model(entry: Entry[ServiceSpec], jobs: Sequence[Entry[JobSpec]]) -> Iterator[Problem]:
    model, key, kind = entry.text("model"), f"{entry.key}.model", engine_kind(entry)
    if model is None or kind == "app":
        return
    forms, schemes = _FORMS.get(kind, _FORMS["jax"]), _SCHEMES.get(kind, _SCHEMES["jax"])
    scheme, colon, rest = model.partition(":")
    if not model.strip():
        yield Problem(key=key, value=model, reason="no model is named", allowed=forms)
    elif scheme == "job" and colon:
        known = tuple(name for job in jobs if (name := job.text("name")) is not None)
        if rest not in known:
            close = nearest(rest, known) or (known[0] if len(known) == 1 else None)
            yield Problem(
                key=key,
                value=model,
                reason=f"there is no job named {rest}" if rest else "no job is named",
                allowed=tuple(f"job:{name}" for name in known),
                nearest=f"job:{close}" if close else None,
            )
    elif scheme == "package" and colon and kind == "vllm":
        reason = "vLLM does not load a model of an installed package"
        yield Problem(key=key, value=model, reason=reason, allowed=forms)
    elif scheme == "package" and colon:
        if not all(part.isidentifier() for part in rest.split(".")):
            fixed = re.sub(r"[^0-9a-zA-Z_.]", "_", rest.strip())
            good = all(part.isidentifier() for part in fixed.split("."))
            yield Problem(
                key=key,
                value=model,
                reason="behind package: stands the name by which Python imports the package",
                allowed=forms[:1],
                nearest=f"package:{fixed}" if good else None,
            )
    elif scheme == "hf" and colon:
        if hub_model(model) is None:
            bare = re.sub(r"^(https?:)?/*(huggingface[.]co/|hf[.]co/)?", "", rest.strip()).strip("/")
            close = f"hf:{bare.replace('/tree/', '@')}"
            yield Problem(
                key=key,
                value=model,
                reason="behind hf: stand the organisation and the name of a model of the hub, and its revision or none",
                allowed=(_HUB,),
                nearest=close if hub_model(close) else None,
            )
    elif colon and "/" not in scheme and not (scheme == "gs" and rest.startswith("//")):
        close = nearest(scheme, schemes)
        yield Problem(
            key=key,
            value=model,
            reason=f"no model comes from {scheme}:",
            allowed=forms,
            nearest=f"{close}:{rest}" if close else None,
        )


def _engine(entry: Entry[ServiceSpec]) -> Iterator[Problem]:
    if entry.spec is None or not entry.sound("engine.context", "engine.prefill_buckets"):
        return
    if not isinstance(entry.spec.engine, EngineSpec):
        return
    context, buckets = entry.spec.engine.context, entry.spec.engine.prefill_buckets
    key = f"{entry.key}.engine.prefill_buckets"
    for index, bucket in enumerate(buckets):
        if bucket > context:
            yield Problem(
                key=f"{key}[{index}]",
                value=bucket,
                reason=f"longer than the context ({context} tokens): no prompt can need it",
                allowed=(f"1 to {context}",),
                nearest=context,
            )
    if list(buckets) != sorted(set(buckets)):
        yield Problem(
            key=key,
            value=list(buckets),
            reason="the lengths must ascend, each once",
            nearest=sorted(set(buckets)),
        )


def _context_of_job(entry: Entry[ServiceSpec], jobs: Sequence[Entry[JobSpec]]) -> Iterator[Problem]:
    """A service that promises more tokens than the job's model was made for."""
    name = (entry.text("model") or "").removeprefix("job:")
    job = next((job for job in jobs if job.text("name") == name and entry.text("model") == f"job:{name}"), None)
    if job is None or job.wrote("entrypoint") or not job.sound("model.context") or not entry.sound("engine.context"):
        return
    assert job.spec is not None
    assert entry.spec is not None
    if isinstance(entry.spec.engine, AppSpec):
        return
    most, wanted = job.spec.model.context, entry.spec.engine.context
    if wanted is not None and wanted > most:
        yield Problem(
            key=f"{entry.key}.engine.context",
            value=wanted,
            reason=f"{job.key} trains a model for {most} tokens",
            allowed=(f"16 to {most}",),
            nearest=most,
        )

"""Rules about engines: where each can run, what it loads, and what follows from the slice and is not said again."""

import re
from collections.abc import Iterator, Mapping, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.plain import Plain, is_secret_name, plain, without_secrets
from infra.stack.problems import Problem
from infra.stack.rules_pools import Pool
from infra.stack.translate import NO_SUCH_KEY, Entry, dotted
from workloads.spec import AppSpec, ServiceSpec, Slice, VllmSpec
from workloads.spec.engines import DERIVED_FROM_SLICE, PIPELINE, SAID_ELSEWHERE

ENGINES = ("jax", "vllm", "app")
_HUB_MODEL = re.compile(r"[A-Za-z0-9][-_.A-Za-z0-9]*(/[A-Za-z0-9][-_.A-Za-z0-9]*)?")
_NAMES_ONE = re.compile(r"_(env|file|name|path|var)$")
"""The end of a key that says where a secret is, and is none."""
_BARE_HUB_MODEL = re.compile(r"[A-Za-z0-9][-_.A-Za-z0-9]*/[A-Za-z0-9][-_.A-Za-z0-9]*")
_LAST_TWO_PARTS = re.compile(rf"{_BARE_HUB_MODEL.pattern}$")


def engine_in_full(item: Plain) -> Plain:
    """An entry of services, with a bare `engine: vllm` as the mapping that it is short for."""
    if isinstance(item, dict) and item.get("engine") in ENGINES:
        return {**item, "engine": {"kind": item["engine"]}}
    return item


_PLACES = re.compile(r"accelerator|topology|tpu|chip|host|placement_group|tensor_parallel|data_parallel")


def placed_by_pool(problems: Sequence[Problem]) -> list[Problem]:
    """The problems of reading a service, where unknown keys of its engine for where it runs say that the pool does."""
    reason = (
        "this is not asked: chips, hosts and topology of an engine are those of the pool's slice; leave the key out"
    )
    return [
        problem.model_copy(update={"reason": reason, "allowed": (), "nearest": None})
        if problem.reason == NO_SUCH_KEY
        and ".engine." in problem.key
        and _PLACES.search(problem.key.rpartition(".")[2].lower())
        else problem
        for problem in problems
    ]


def engine_kind(entry: Entry[ServiceSpec]) -> str:
    """The engine that the entry names, `jax` where it names none; empty where it names one that there is not."""
    engine = entry.raw.get("engine", {})
    kind = engine.get("kind", "jax") if isinstance(engine, dict) else engine
    return kind if isinstance(kind, str) and kind in ENGINES else ""


def engine_problems(
    entries: Sequence[Entry[ServiceSpec]],
    pools: Mapping[str, Pool],
    platform: Entry[LocalPlatform | GkePlatform] | None,
) -> Iterator[Problem]:
    """Everything that is wrong with engines other than the bundled one."""
    local = platform is not None and isinstance(platform.spec, LocalPlatform)
    for entry in entries:
        kind = engine_kind(entry)
        yield from _model_of(entry, kind)
        if entry.spec is None:
            continue
        if isinstance(entry.spec.engine, AppSpec):
            yield from _secrets(entry, "args")
        elif kind == "vllm":
            if local:
                yield _not_here(entry)
            pool = pools.get(entry.text("pool") or "")
            yield from _one_machine(entry, pool)
            yield from _secrets(entry, "kwargs")
            yield from _kwargs(entry, pool.slice if pool else None)


def _model_of(entry: Entry[ServiceSpec], kind: str) -> Iterator[Problem]:
    """Whether the engine wants a model at all, and if it is vLLM's, whether it is one that vLLM finds."""
    key, model = f"{entry.key}.model", entry.text("model")
    if kind == "app" and entry.wrote("model"):
        yield Problem(
            key=key,
            value=entry.raw["model"],
            reason="an application loads what its own code and `engine.args` say; leave the key out",
        )
    elif kind in ("jax", "vllm") and not entry.wrote("model") and entry.spec is not None:
        yield Problem(key=key, reason="this key is required and missing")
    elif kind == "vllm" and model is not None:
        yield from _hub_model(key, model)


def _hub_model(key: str, model: str) -> Iterator[Problem]:
    form = ("hf:<organisation>/<model>",)
    if model.startswith("hf:") and not _HUB_MODEL.fullmatch(model[3:]):
        found = _LAST_TWO_PARTS.search(model)
        reason = "behind hf: stands the model's name on the hub"
        yield Problem(key=key, value=model, reason=reason, allowed=form, nearest=f"hf:{found[0]}" if found else None)
    elif _BARE_HUB_MODEL.fullmatch(model):
        reason = "a path is written in full; a model of the hub has hf: in front"
        yield Problem(key=key, value=model, reason=reason, allowed=form, nearest=f"hf:{model}")


def _not_here(entry: Entry[ServiceSpec]) -> Problem:
    return Problem(
        key=f"{entry.key}.engine",
        value="vllm",
        reason="vLLM needs real TPU chips, and the hosts of the local platform have none",
        allowed=("jax", "app"),
        nearest="jax",
    )


def _one_machine(entry: Entry[ServiceSpec], pool: Pool | None) -> Iterator[Problem]:
    shape = pool.slice if pool else None
    if shape is not None and not shape.fewest_hosts:
        assert pool is not None
        yield Problem(
            key=f"{entry.key}.pool",
            value=pool.name,
            reason=f"Ray Serve LLM takes a {shape.generation} slice {shape.topology} for one host, and the slices of "
            f"this pool have {shape.hosts} ({pool.key}.machine_type)",
        )


def _kwargs(entry: Entry[ServiceSpec], shape: Slice | None) -> Iterator[Problem]:
    assert entry.spec is not None
    engine = entry.spec.engine
    if not isinstance(engine, VllmSpec):
        return
    for name, value in engine.kwargs.items():
        key, value = f"{entry.key}.engine.kwargs.{name}", without_secrets(plain(value))
        if is_secret_name(name):
            continue
        if name.replace("-", "_") in DERIVED_FROM_SLICE:
            what = f"the {shape.devices} devices of the {shape.generation} slice {shape.topology}" if shape else "slice"
            yield Problem(key=key, value=value, reason=f"this is not asked: it follows from {what}; leave the key out")
        elif name.replace("-", "_") in SAID_ELSEWHERE:
            other = f"{entry.key}.{SAID_ELSEWHERE[name.replace('-', '_')]}"
            yield Problem(key=key, value=value, reason=f"this is said by {other}; leave the key out")
        elif not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            fixed = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
            reason = "vLLM's arguments are written with lower-case letters and underscores"
            yield Problem(key=key, value=value, reason=reason, nearest=fixed or None)
    stages = engine.kwargs.get(PIPELINE, 1)
    if shape is not None and (isinstance(stages, bool) or stages not in (1, shape.hosts)):
        yield Problem(
            key=f"{entry.key}.engine.kwargs.{PIPELINE}",
            value=stages,
            reason=f"a stage of the pipeline is the whole slice or one of its {shape.hosts} hosts"
            if shape.multi_host
            else "a slice of one host is one stage",
            allowed=("1", str(shape.hosts)) if shape.multi_host else ("1",),
            nearest=shape.hosts if shape.multi_host else 1,
        )


def _secrets(entry: Entry[ServiceSpec], part: str) -> Iterator[Problem]:
    """What is called like a secret: these values are text in Serve's config, which whoever sees the pods can read."""
    engine = entry.raw.get("engine")
    values = engine.get(part) if isinstance(engine, dict) else None
    for place in _named_like_secrets(values, ("engine", part)):
        yield Problem(
            key=dotted(entry.key, place),
            value="[secret]",
            reason="a secret has no place in Serve's config, which is not kept secret; the hub's token is in the "
            "environment of the pods",
            allowed=("tpu-ray:hubToken",),
        )


def _named_like_secrets(value: Plain, place: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            said_of_another = name == "value" and is_secret_name(str(value.get("name", "")))
            if isinstance(inner, str) and (said_of_another or (is_secret_name(name) and not _NAMES_ONE.search(name))):
                yield (*place, name)
            else:
                yield from _named_like_secrets(inner, (*place, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _named_like_secrets(inner, (*place, index))

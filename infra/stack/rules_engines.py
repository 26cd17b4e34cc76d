"""Rules about engines: where each can run, what it loads, and what follows from the slice and is not said again."""

import re
from collections.abc import Iterator, Mapping, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.plain import NoNumber, Plain, is_secret, is_secret_name, plain, without_secrets
from infra.stack.problems import Problem
from infra.stack.rules_env import A_SECRET
from infra.stack.rules_pools import Pool
from infra.stack.translate import NO_SUCH_KEY, Entry, dotted
from workloads.spec import AppSpec, ServiceSpec, Slice, VllmSpec
from workloads.spec.engines import DERIVED_FROM_SLICE, PIPELINE, SAID_ELSEWHERE

ENGINES = ("jax", "vllm", "app")
_NAMES_ONE = re.compile(r"(^|_)(env|file|name|path|ref|var)$")
"""The end of a key that says where a secret is, and is none."""
_OF_THE_HUB = re.compile(r"(hf|hub|hugging_?face(_hub)?)_?token")
_BARE_HUB_MODEL = re.compile(r"[A-Za-z0-9][-_.A-Za-z0-9]*/[A-Za-z0-9][-_.A-Za-z0-9]*")


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
            yield from _values(entry, "args")
        elif kind == "vllm":
            if local:
                yield _not_here(entry)
            pool = pools.get(entry.text("pool") or "")
            yield from _one_machine(entry, pool)
            yield from _values(entry, "kwargs")
            yield from _kwargs(entry, pool.slice if pool else None)


def _model_of(entry: Entry[ServiceSpec], kind: str) -> Iterator[Problem]:
    """Whether the engine wants a model at all, and of vLLM's, whether it says where it comes from."""
    key, model = f"{entry.key}.model", entry.text("model")
    if kind == "app" and entry.wrote("model"):
        yield Problem(
            key=key,
            value=entry.raw["model"],
            reason="an application loads what its own code and `engine.args` say; leave the key out",
        )
    elif kind in ("jax", "vllm") and not entry.wrote("model") and entry.spec is not None:
        yield Problem(key=key, reason="this key is required and missing")
    elif kind == "vllm" and model is not None and _BARE_HUB_MODEL.fullmatch(model):
        reason = "a path is written in full; a model of the hub has hf: in front"
        allowed = ("hf:<organisation>/<name>[@<revision>]",)
        yield Problem(key=key, value=model, reason=reason, allowed=allowed, nearest=f"hf:{model}")


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
    if shape is None:
        return
    whole, right = type(stages) is int, (1, shape.hosts)
    if not whole or stages not in right:
        said = (
            f"a stage of the pipeline is the whole slice or one of its {shape.hosts} hosts"
            if shape.multi_host
            else "a slice of one host is one stage"
        )
        yield Problem(
            key=f"{entry.key}.engine.kwargs.{PIPELINE}",
            value=stages,
            reason=said if whole else f"must be a whole number: {said}",
            allowed=tuple(map(str, dict.fromkeys(right))),
            nearest=int(stages) if isinstance(stages, int | float) and stages in right else shape.hosts,
        )


def _values(entry: Entry[ServiceSpec], part: str) -> Iterator[Problem]:
    """What has no place among an engine's arguments: Serve's config is JSON, which whoever sees the pods can read."""
    engine = entry.raw.get("engine")
    values = engine.get(part) if isinstance(engine, dict) else None
    for place, name in _named_like_secrets(values, ("engine", part)):
        word = _words_of(name)
        hub = _OF_THE_HUB.fullmatch(word) is not None
        instead = "the hub's token is" if hub else "`secret_env` puts it"
        variable = re.sub(r"[^A-Z0-9_]", "_", word.upper())
        yield Problem(
            key=dotted(entry.key, place),
            value="[secret]",
            reason=f"a secret has no place in Serve's config, which is not kept secret; {instead} in the environment "
            "of the pods",
            allowed=("tpu-ray:hubToken",) if hub else (f"{entry.key}.secret_env.{variable}: {A_SECRET}",),
        )
    for place, value in _no_numbers(values, ("engine", part)):
        reason = "Serve's config is JSON, and JSON has no such number"
        allowed = ("a finite number of 64 bits", "a text in quotes")
        yield Problem(key=dotted(entry.key, place), value=value, reason=reason, allowed=allowed)


Place = tuple[str | int, ...]


def _named_like_secrets(value: Plain, place: Place) -> Iterator[tuple[Place, str]]:
    """Where a secret stands, and the name that tells so."""
    if isinstance(value, dict):
        for name, inner in value.items():
            told = str(value.get("name", "")) if name == "value" else name
            if is_secret_name(told) and not _NAMES_ONE.search(_words_of(told)) and _holds_one(inner):
                yield (*place, name), told
            else:
                yield from _named_like_secrets(inner, (*place, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _named_like_secrets(inner, (*place, index))


def _holds_one(value: Plain) -> bool:
    """Whether something in the value may be a secret: a text or a number, and not the name of where one is."""
    if isinstance(value, dict):
        named = (inner for name, inner in value.items() if not _NAMES_ONE.search(_words_of(name)))
        return not is_secret(value) and any(map(_holds_one, named))
    if isinstance(value, list):
        return any(map(_holds_one, value))
    return value is not None and not isinstance(value, bool) and value != ""


def _no_numbers(value: Plain, place: Place) -> Iterator[tuple[Place, str]]:
    """Where something stands that JSON cannot say."""
    if isinstance(value, NoNumber):
        yield place, str(value)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _no_numbers(inner, (*place, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _no_numbers(inner, (*place, index))


def _words_of(name: str) -> str:
    """A name with underscores between its words: `hfToken` and `HF-TOKEN` as `hf_token`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()

"""A stack file's `config:` mapping as a StackSpec, or everything that is wrong with it."""

import json
from collections.abc import Mapping
from typing import Any

from infra.stack.model import Platform, PoolSpec, StackSpec
from infra.stack.plain import Plain, TooLargeError, is_secret, is_secret_name, plain, secrets_in, without_secrets
from infra.stack.problems import Problem, StackError
from infra.stack.rules_bucket import bucket_problems
from infra.stack.rules_capacity import capacity_problems, keep_cluster_problems
from infra.stack.rules_engines import engine_in_full, engine_problems, placed_by_pool
from infra.stack.rules_env import A_SECRET, env_problems
from infra.stack.rules_fit import fit_problems
from infra.stack.rules_gke import gke_problems
from infra.stack.rules_jobs import job_problems
from infra.stack.rules_names import node_pool_name_problems
from infra.stack.rules_platform import platform_problems
from infra.stack.rules_pools import pool_problems, pools_by_name, said_once, single_pool_problems
from infra.stack.rules_replicas import replica_problems
from infra.stack.rules_runs import in_our_words, run_problems, told_by_rules
from infra.stack.rules_services import pool_meant, service_problems
from infra.stack.translate import Entry, read_entry
from workloads.spec import JobSpec, ServiceSpec
from workloads.spec.nearest import nearest

LISTS: Mapping[str, Any] = {"pools": PoolSpec, "services": ServiceSpec, "jobs": JobSpec}
SECRETS = ("hubToken",)
"""Keys that hold a secret. Each is a top-level key of its own."""
KEYS = ("platform", *LISTS, *SECRETS)


def parse_stack(config: Mapping[str, object], project: str = "tpu-ray") -> StackSpec:
    """The stack that a `config:` mapping with full keys (`tpu-ray:pools`) describes.

    Keys of other programs and providers (`gcp:project`) are left alone.

    Raises:
        StackError: with every mistake of the mapping in `problems`, sorted by where they stand.
    """
    problems: list[Problem] = []
    mine = _own_keys(config, project, problems)
    platform = _platform(mine, project, problems)
    pools, jobs = (_entries(mine, name, project, problems) for name in ("pools", "jobs"))
    services = _entries(_contexts_of_jobs(mine, jobs), "services", project, problems)
    unreadable = {name for name in LISTS if _told(f"{project}:{name}", problems)}
    known = pools_by_name(pools)
    # Who uses which pool is only known where both lists could be read.
    used = known if unreadable & {"services", "jobs"} else [pool_meant(entry, known) for entry in (*services, *jobs)]
    problems += platform_problems(platform) if platform else ()
    problems += gke_problems(platform, pools, services) if platform else ()
    problems += pool_problems(pools, used)
    problems += [
        problem
        for problem in service_problems(services, known, jobs)
        if not ("jobs" in unreadable and problem.key.endswith(".model") and str(problem.value).startswith("job:"))
    ]
    problems += engine_problems(services, known, platform)
    problems += replica_problems(services, known, platform)
    problems += job_problems(jobs, known)
    problems += run_problems(jobs, services, _queued(platform, pools))
    problems += env_problems(platform, services, jobs)
    problems += capacity_problems(services, jobs, known)
    problems += keep_cluster_problems(platform, services, jobs, known)
    problems += fit_problems(platform, services, jobs, known)
    problems += bucket_problems(platform, services, jobs) if platform else ()
    if problems:
        raise StackError(_in_order(in_our_words(problems, services, jobs), project))
    return StackSpec(
        platform=_read(platform),
        pools=tuple(map(_read, pools)),
        services=tuple(map(_read, services)),
        jobs=tuple(map(_read, jobs)),
    )


def parse_pool(raw: Mapping[str, object], key: str) -> PoolSpec:
    """One pool by itself, for a program that makes pools without a stack file. `key` is what its keys stand below.

    Raises:
        StackError: with every mistake of it.
    """
    entry, found = read_entry(PoolSpec, plain(raw), key)
    problems = said_once(entry, found)
    problems += single_pool_problems(entry)
    problems += node_pool_name_problems([entry], cpu_pool=False)
    if problems:
        raise StackError(problems)
    pool = _read(entry)
    assert isinstance(pool, PoolSpec)
    return pool


def _told(key: str, problems: list[Problem]) -> bool:
    """Whether something is wrong with the whole of a top-level key, so that no more can be said of it."""
    return any(problem.key == key for problem in problems)


def _read(entry: Entry[Any] | None) -> Any:
    """The value of an entry that was found without mistakes, which it then has."""
    assert entry is not None
    assert entry.spec is not None
    return entry.spec


def _queued(platform: Entry[Any] | None, pools: list[Entry[PoolSpec]]) -> set[str]:
    """The names of the pools whose slices Kueue hands out."""
    if platform is None or platform.raw.get("kind") != "gke":
        return set()
    return {name for pool in pools if pool.text("capacity") == "queued" and (name := pool.text("name")) is not None}


def _own_keys(config: Mapping[str, object], project: str, problems: list[Problem]) -> dict[str, Plain]:
    """This project's keys without their prefix, as plain JSON."""
    known = tuple(f"{project}:{name}" for name in KEYS)
    mine: dict[str, Plain] = {}
    for key, value in config.items():
        prefix, colon, name = str(key).partition(":")
        if not colon:
            prefix, name = "", prefix
        if prefix not in (project, "") and nearest(prefix, [project]) is None:
            continue
        try:
            bare = plain(value)
        except TooLargeError:
            problems.append(Problem(key=str(key), reason="nested too deeply, or far too many values"))
            continue
        if prefix == project and name in KEYS:
            mine[name] = bare
            continue
        reason = "there is no such key" if colon else f"a key of a stack file begins with {project}:"
        close = nearest(f"{project}:{name}", known)
        hidden = is_secret_name(name) or (close is not None and close.endswith(SECRETS))
        shown = "[secret]" if hidden else without_secrets(bare)
        problems.append(Problem(key=str(key), value=shown, reason=reason, allowed=known, nearest=close))
    return mine


def _platform(mine: Mapping[str, Plain], project: str, problems: list[Problem]) -> Entry[Any] | None:
    key, value = f"{project}:platform", mine.get("platform")
    if _told(key, problems):
        return None
    if value is None:
        problems.append(Problem(key=key, reason="this key is required and missing", allowed=("local", "gke")))
        return None
    if _has_secrets(value, key, project, problems):
        return None
    short = isinstance(value, str)
    value = _decoded(value)
    if not isinstance(value, str | dict):
        reason = "here belongs the platform's name, or a mapping with its kind"
        problems.append(Problem(key=key, value=without_secrets(value), reason=reason, allowed=("local", "gke")))
        return None
    raw: Plain = {"kind": value} if isinstance(value, str) else value
    entry, found = read_entry(Platform, raw, key)
    for problem in found:
        kind = short and problem.key == f"{key}.kind"
        problems.append(problem.model_copy(update={"key": key}) if kind else problem)
    return entry


def _entries(mine: Mapping[str, Plain], name: str, project: str, problems: list[Problem]) -> list[Entry[Any]]:
    """The entries of one list. What is wrong with single keys of them is added to `problems`."""
    key, value = f"{project}:{name}", _decoded(mine.get(name))
    if value is None or value == []:
        if name == "pools" and not _told(key, problems):
            problems.append(Problem(key=key, reason="at least one pool of slices is required", nearest=None))
        return []
    if is_secret(value):
        _has_secrets(value, key, project, problems)
        return []
    if not isinstance(value, list):
        single = [value] if isinstance(value, dict) else None
        shown = without_secrets(value)
        problems.append(Problem(key=key, value=shown, reason="must be a list", allowed=("a list",), nearest=single))
        return []
    entries: list[Entry[Any]] = []
    for index, item in enumerate(value):
        place = f"{key}[{index}]"
        hidden = _has_secrets(item, place, project, problems)
        entry, found = read_entry(LISTS[name], item, place)
        found = said_once(entry, found) if name == "pools" else placed_by_pool(found)
        entries.append(entry)
        # A name that is too long is told by the rule that knows the pool, with the limit that holds there.
        long_name = name != "pools" and isinstance(item, dict) and isinstance(item.get("name"), str)
        elsewhere = told_by_rules(item) if name == "jobs" and isinstance(item, dict) else ()
        problems += [
            problem
            for problem in found
            if not (hidden and "[secret]" in json.dumps(problem.value))
            and not problem.key.startswith(tuple(f"{at}." for at in hidden))
            and not f"{problem.key}.".startswith(tuple(f"{place}.{part}." for part in elsewhere))
            and not (long_name and problem.key == f"{place}.name" and problem.reason.endswith("fit"))
        ]
    return entries


def _contexts_of_jobs(mine: Mapping[str, Plain], jobs: list[Entry[JobSpec]]) -> dict[str, Plain]:
    """The same keys, where each service of a job's model that says no context has that model's: it is said once."""
    contexts = {
        f"job:{job.text('name')}": job.spec.model.context
        for job in reversed(jobs)
        if job.spec is not None and job.sound("model.context") and not job.wrote("entrypoint")
    }
    services = _decoded(mine.get("services"))
    if not isinstance(services, list):
        return dict(mine)
    found: list[Plain] = []
    for item in map(engine_in_full, services):
        model, engine = (item.get("model"), item.get("engine", {})) if isinstance(item, dict) else (None, None)
        if (
            isinstance(item, dict)
            and isinstance(model, str)
            and isinstance(engine, dict)
            and model in contexts
            and engine.get("kind") != "app"
        ):
            item = {**item, "engine": {"context": contexts[model], **engine}}
        found.append(item)
    return {**mine, "services": found}


def _decoded(value: Plain) -> Plain:
    """Pulumi also stores lists and objects as JSON text; such text counts as what it says."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return plain(json.loads(value))
        except (ValueError, RecursionError):
            return value
    return value


def _has_secrets(value: Plain, key: str, project: str, problems: list[Problem]) -> list[str]:
    """The places of all secrets in a value, each of which is a problem."""
    found = [place.removesuffix(".secure") for place in secrets_in(value, key)]
    own = tuple(f"{project}:{name}" for name in SECRETS)
    why = "one secret makes the whole value secret, and what decides how much is built must be readable"
    for place in found:
        named, variable = ".secret_env." in place, place.partition("].env.")
        instead = "what is named here is the Kubernetes secret" if named else "a secret is a top-level key of its own"
        allowed, close = ((A_SECRET,), None) if named else (own, own[0])
        if variable[1]:
            instead = "a variable's value is a Kubernetes secret's, which is named"
            allowed, close = (f"{variable[0]}].secret_env.{variable[2]}: {A_SECRET}",), None
        reason = f"{why}; {instead}"
        problems.append(Problem(key=place, value="[secret]", reason=reason, allowed=allowed, nearest=close))
    return found


def _in_order(problems: list[Problem], project: str) -> list[Problem]:
    """By where they stand in the file: platform, pools, services, jobs, in each by number; unknown keys last."""
    heads = [f"{project}:{name}" for name in KEYS]

    def place(problem: Problem) -> tuple[int, int]:
        head, bracket, rest = problem.key.partition("[")
        number = int(rest.split("]")[0]) if bracket and rest.split("]")[0].isdecimal() else -1
        head = head.split(".")[0]
        return (heads.index(head) if head in heads else len(heads), number)

    return sorted(problems, key=place)

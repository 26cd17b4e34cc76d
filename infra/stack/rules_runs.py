"""Rules about how runs are started, kept and ended: the user's own command, schedules, suspension."""

import re
from collections.abc import Iterator, Mapping, Sequence

from infra.stack.plain import Plain, is_secret_name, without_secrets
from infra.stack.problems import Problem
from infra.stack.rules_engines import engine_kind
from infra.stack.rules_schedule import schedule_problems
from infra.stack.translate import NO_SUCH_KEY, Entry
from workloads.spec import JobSpec, ServiceSpec
from workloads.spec.job import RECIPE_KEYS

KUBERAY_WORDS: Mapping[str, tuple[str, str]] = {
    "shutdownafterjobfinishes": (
        "keep_cluster_s",
        "a finished run always gives its slice back, also when it failed; keep_cluster_s says how long after",
    ),
    "ttlsecondsafterfinished": ("keep_cluster_s", "keep_cluster_s says how long a finished run's cluster stays"),
    "backofflimit": ("retries", "retries says how often a run that failed begins again"),
    "activedeadlineseconds": ("timeout_s", "timeout_s says how long a run may take"),
    "timezone": ("time_zone", "time_zone says where `schedule` is meant"),
    "cron": ("schedule", "schedule says when a run begins"),
    "runtimeenv": ("env", "env has the environment variables of a run"),
    "runtimeenvyaml": ("env", "env has the environment variables of a run"),
    "envvars": ("env", "env has the environment variables of a run"),
}
"""Keys of a RayJob without dashes and upper case, with ours and what it says.
https://github.com/ray-project/kuberay/blob/v1.6.2/ray-operator/apis/ray/v1/rayjob_types.go"""


VARIABLES = ("env", "envvars", "environment", "runtimeenv")
"""Keys that others have for the variables of a service."""


def in_our_words(
    problems: Sequence[Problem], services: Sequence[Entry[ServiceSpec]], jobs: Sequence[Entry[JobSpec]]
) -> list[Problem]:
    """The same problems, where a key that is KubeRay's names ours."""
    ours: dict[str, tuple[tuple[str, ...], str]] = {}
    for entry in jobs:
        for key, name in _bare_keys(entry):
            if name in KUBERAY_WORDS:
                one, says = KUBERAY_WORDS[name]
                ours[key] = (one,), says
    for service in services:
        ours |= {key: _instead_of_env(service, key) for key, name in _bare_keys(service) if name in VARIABLES}
    return [
        problem.model_copy(update={"reason": f"{NO_SUCH_KEY}: {found[1]}", "allowed": found[0], "nearest": found[0][0]})
        if problem.reason == NO_SUCH_KEY and (found := ours.get(problem.key))
        else problem
        for problem in problems
    ]


def _bare_keys(entry: Entry[JobSpec] | Entry[ServiceSpec]) -> Iterator[tuple[str, str]]:
    """Every key of an entry in full, and the same without dashes and upper case."""
    for name in entry.raw:
        yield f"{entry.key}.{name}", re.sub("[-_]", "", name).lower()


def _instead_of_env(service: Entry[ServiceSpec], key: str) -> tuple[tuple[str, ...], str]:
    """What a service has in place of `env`, which stands at `key`."""
    part = {"app": "engine.args", "vllm": "engine.kwargs"}.get(engine_kind(service))
    says = "secret_env names the variables whose values are secrets"
    if part is None:
        return ("secret_env",), says
    written = service.raw[key.rpartition(".")[2]]
    secret = not isinstance(written, dict) or any(map(is_secret_name, written))
    both = ("secret_env", part) if secret else (part, "secret_env")
    return both, f"{says}; what else the engine is told stands in {part}"


def told_by_rules(job: Mapping[str, Plain]) -> tuple[str, ...]:
    """The keys of a job of which a rule tells all that there is to tell, so that the wrong type is none."""
    env = job.get("env")
    variables = [f"env.{name}" for name in env if is_secret_name(name)] if isinstance(env, dict) else []
    return (*variables, *(RECIPE_KEYS if isinstance(job.get("entrypoint"), str) else ()))


def run_problems(
    jobs: Sequence[Entry[JobSpec]], services: Sequence[Entry[ServiceSpec]], queued: set[str]
) -> Iterator[Problem]:
    """Everything that is wrong with how runs are started. `queued` are the pools of that capacity on GKE."""
    for entry in jobs:
        yield from _recipe_keys(entry)
        yield from schedule_problems(entry)
        yield from _suspended(entry, queued)
    scheduled = {f"job:{entry.text('name')}": entry for entry in jobs if entry.text("schedule") is not None}
    for service in services:
        model = service.text("model") or ""
        if model in scheduled:
            reason = (
                f"{scheduled[model].key}.schedule gives each run a folder of its own: serve one of them by its path"
            )
            yield Problem(key=f"{service.key}.model", value=model, reason=reason, allowed=("a path to a folder",))


def _recipe_keys(entry: Entry[JobSpec]) -> Iterator[Problem]:
    """Keys of the recipe beside a command of the user's own."""
    if entry.text("entrypoint") is None:
        return
    for name in RECIPE_KEYS:
        if name in entry.raw:
            yield Problem(
                key=f"{entry.key}.{name}",
                value=without_secrets(entry.raw[name]),
                reason=f"this is the bundled recipe's; what {entry.key}.entrypoint takes stands in it",
            )


def _suspended(entry: Entry[JobSpec], queued: set[str]) -> Iterator[Problem]:
    if entry.raw.get("suspend") is not True:
        return
    key = f"{entry.key}.suspend"
    if entry.text("pool") in queued:
        reason = f"Kueue decides when a run of pool {entry.text('pool')}, of capacity queued, has its slice"
        yield Problem(key=key, value=True, reason=reason, allowed=("false",), nearest=False)
    if entry.raw.get("wait") is True and entry.text("schedule") is None:
        reason = f"{entry.key}.wait waits for the end of the run, which would not come"
        yield Problem(key=key, value=True, reason=reason, allowed=("false", "true without `wait`"), nearest=False)


def is_paused(service: Entry[ServiceSpec]) -> bool:
    """Whether the service takes no slice, and waits for none."""
    return service.raw.get("paused") is True

"""Rules about environment variables of services and jobs: plain ones, and those whose values are secrets."""

import re
from collections.abc import Iterator, Sequence

from infra.stack.plain import Plain, is_secret_name, without_secrets
from infra.stack.problems import Problem
from infra.stack.translate import Entry
from workloads.spec import JobSpec, ServiceSpec, VllmSpec

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""IEEE 1003.1, 8.1: a shell takes no other."""
GIVEN = re.compile(
    r"MEGASCALE_|TPU_(WORKER_|NAME$|TOPOLOGY|ACCELERATOR|CHIPS_PER|HOST_BOUNDS|PROCESS_|VISIBLE_|RAY_)"
    r"|RAY_(ADDRESS$|JOB_|AUTH_|CLUSTER_NAME$)|KUBERAY_|KUBERNETES_"
)
"""What the slice, Ray and Kubernetes say themselves, and say otherwise after a restart.
https://github.com/ray-project/ray/pull/62893"""
COPIED_BY_LLM = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""What Ray Serve LLM copies from its environment into a runtime_env, which Ray shows to whoever asks
(ENV_VARS_TO_PROPAGATE in ray/llm/_internal/serve/constants.py of 2.60.0)."""
A_SECRET = "{secret: <name of a Kubernetes secret>, key: <key in it>}"


def env_problems(services: Sequence[Entry[ServiceSpec]], jobs: Sequence[Entry[JobSpec]]) -> Iterator[Problem]:
    """Everything that is wrong with `env` and `secret_env`."""
    for service in services:
        yield from _secret_env(service)
        if service.spec is not None and isinstance(service.spec.engine, VllmSpec):
            yield from _copied(service)
    for job in jobs:
        yield from _env(job)
        yield from _secret_env(job)


def _env(entry: Entry[JobSpec]) -> Iterator[Problem]:
    for name, value in _variables(entry, "env").items():
        key, shown = f"{entry.key}.env.{name}", _shown(name, value)
        if is_secret_name(name):
            reason = "this is called like a secret, and everybody who may read the run would see it"
            allowed = (f"{entry.key}.secret_env.{name}: {A_SECRET}", "plain text that is no secret")
            yield Problem(key=key, value=shown, reason=reason, allowed=allowed)
        else:
            yield from _name(key, name, shown)


def _secret_env(entry: Entry[JobSpec] | Entry[ServiceSpec]) -> Iterator[Problem]:
    plain = _variables(entry, "env")
    for name in _variables(entry, "secret_env"):
        key = f"{entry.key}.secret_env.{name}"
        if name in plain:
            reason = f"{entry.key}.env has this variable too"
            yield Problem(key=key, value="[secret]", reason=reason, allowed=("one of the two",))
        else:
            yield from _name(key, name, "[secret]")


def _copied(entry: Entry[ServiceSpec]) -> Iterator[Problem]:
    for name in _variables(entry, "secret_env"):
        if name in COPIED_BY_LLM:
            reason = "Ray Serve LLM would write its value where everybody can read it; the hub's token has its own key"
            key = f"{entry.key}.secret_env.{name}"
            yield Problem(key=key, value="[secret]", reason=reason, allowed=("tpu-ray:hubToken",))


def _name(key: str, name: str, shown: Plain) -> Iterator[Problem]:
    if not ENV_NAME.fullmatch(name):
        close = re.sub(r"[^A-Za-z0-9_]", "_", name)
        near = close if ENV_NAME.fullmatch(close) else None
        reason = "a variable's name has letters, digits and underscores, no digit first"
        yield Problem(key=key, value=shown, reason=reason, allowed=("a name such as LOG_LEVEL",), nearest=near)
    elif GIVEN.match(name):
        reason = "the slice, Ray or the platform says this itself, to each host and at each restart anew"
        yield Problem(key=key, value=shown, reason=reason, allowed=("any other variable",))


def _variables(entry: Entry[JobSpec] | Entry[ServiceSpec], key: str) -> dict[str, Plain]:
    found = entry.raw.get(key)
    return found if isinstance(found, dict) else {}


def _shown(name: str, value: Plain) -> Plain:
    return "[secret]" if is_secret_name(name) else without_secrets(value)

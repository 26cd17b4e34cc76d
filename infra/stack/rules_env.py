"""Rules about environment variables of services and jobs: plain ones, and those whose values are secrets."""

import re
from collections.abc import Iterator, Mapping, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform
from infra.stack.plain import Plain, is_secret, is_secret_name, text_without_secrets, without_secrets
from infra.stack.problems import Problem
from infra.stack.translate import Entry
from workloads.spec import JobSpec, ServiceSpec, VllmSpec

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""IEEE 1003.1, 8.1: a shell takes no other."""
GIVEN = re.compile(
    r"MEGASCALE_|TPU_(WORKER_|NAME$|TOPOLOGY|ACCELERATOR|CHIPS_PER|HOST_BOUNDS|PROCESS_|VISIBLE_|RAY_)"
    r"|(FQ_)?RAY_IP$|RAY_((PORT|ADDRESS|DASHBOARD_ADDRESS|CLUSTER_NAME|CLUSTER_NAMESPACE|NODE_TYPE_NAME)$|JOB_|AUTH_"
    r"|(CLOUD_INSTANCE_ID|ENABLE_K8S_TOKEN_AUTH|USAGE_STATS_EXTRA_TAGS|external_storage_namespace)$)"
    r"|KUBERAY_|KUBERNETES_"
)
"""What the slice, Ray and Kubernetes say themselves, and say otherwise after a restart; of KubeRay what it does not
leave to whoever has said it already (controllers/ray/common/pod.go of 1.6.2, setContainerEnvVars).
https://github.com/ray-project/ray/pull/62893"""
REFUSED = ("RAY_REDIS_ADDRESS", "REDIS_USERNAME", "RAY_enable_autoscaler_v2")
"""What KubeRay makes no Ray cluster with, since it has fields for it (ValidateRayClusterSpec in
controllers/ray/utils/validation.go of 1.6.2): the whole service or run would fail."""
REFUSED_WITH_REDIS = ("REDIS_PASSWORD",)
"""The same, of a service whose head keeps what it knows in a Redis."""
OF_THE_PLATFORM = ("JAX_PLATFORMS",)
"""What the pods are told where nobody says otherwise: as a secret it would be another word for the same."""
OF_LLM = ("HF_TOKEN_PATH", "RAY_SERVE_MAX_PER_REPLICA_RETRY_COUNT")
"""What the pods of a service with `engine: vllm` are told besides."""
COPIED_BY_LLM = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""What Ray Serve LLM copies from its environment into a runtime_env, which Ray shows to whoever asks
(ENV_VARS_TO_PROPAGATE in ray/llm/_internal/serve/constants.py of 2.60.0)."""
A_SECRET = "{secret: <name of a Kubernetes secret>, key: <key in it>}"


def env_problems(
    platform: Entry[LocalPlatform | GkePlatform] | None,
    services: Sequence[Entry[ServiceSpec]],
    jobs: Sequence[Entry[JobSpec]],
) -> Iterator[Problem]:
    """Everything that is wrong with `env` and `secret_env`."""
    gke = platform.spec if platform is not None and isinstance(platform.spec, GkePlatform) else None
    refused = dict.fromkeys(REFUSED, _REFUSED)
    of_a_service = dict.fromkeys(OF_THE_PLATFORM, _GIVEN) | refused
    if gke is not None and gke.ray.gcs_fault_tolerance is not None:
        of_a_service |= dict.fromkeys(REFUSED_WITH_REDIS, f"{_REFUSED}; platform.ray.gcs_fault_tolerance has its keys")
    for service in services:
        vllm = service.spec is not None and isinstance(service.spec.engine, VllmSpec)
        yield from _secret_env(service, of_a_service | (dict.fromkeys(OF_LLM, _GIVEN) if vllm else {}))
        if vllm:
            yield from _copied(service)
    for job in jobs:
        yield from _env(job, refused)
        yield from _secret_env(job, dict.fromkeys(OF_THE_PLATFORM, _GIVEN) | refused)


def _env(entry: Entry[JobSpec], refused: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in _variables(entry, "env").items():
        key, shown = f"{entry.key}.env.{name}", _shown(name, value)
        if is_secret(value):
            continue  # That no secret stands in a list is told already, and where it stands instead.
        well_formed = text_without_secrets(name) == name
        if is_secret_name(name) and well_formed and name not in refused and not GIVEN.match(name):
            reason = "this is called like a secret, and everybody who may read the run would see it"
            allowed = (f"{entry.key}.secret_env.{name}: {A_SECRET}", "plain text that is no secret")
            yield Problem(key=key, value=shown, reason=reason, allowed=allowed)
        else:
            yield from _name(key, name, shown, refused)


def _secret_env(entry: Entry[JobSpec] | Entry[ServiceSpec], refused: Mapping[str, str]) -> Iterator[Problem]:
    plain = _variables(entry, "env")
    for name in _variables(entry, "secret_env"):
        key = f"{entry.key}.secret_env.{name}"
        if name in plain:
            reason = f"{entry.key}.env has this variable too"
            yield Problem(key=key, value="[secret]", reason=reason, allowed=("one of the two",))
        else:
            yield from _name(key, name, "[secret]", refused)


def _copied(entry: Entry[ServiceSpec]) -> Iterator[Problem]:
    for name in _variables(entry, "secret_env"):
        if name in COPIED_BY_LLM:
            reason = "Ray Serve LLM would write its value where everybody can read it; the hub's token has its own key"
            key = f"{entry.key}.secret_env.{name}"
            yield Problem(key=key, value="[secret]", reason=reason, allowed=("tpu-ray:hubToken",))


_GIVEN = "the slice, Ray or the platform says this itself, to each host and at each restart anew"
_REFUSED = "KubeRay refuses a Ray cluster whose pods are told this"


def _name(key: str, name: str, shown: Plain, refused: Mapping[str, str]) -> Iterator[Problem]:
    if not ENV_NAME.fullmatch(name):
        close = re.sub(r"[^A-Za-z0-9_]", "_", name)
        near = close if ENV_NAME.fullmatch(close) and "=" not in name else None
        reason = "a variable's name has letters, digits and underscores, no digit first"
        yield Problem(key=key, value=shown, reason=reason, allowed=("a name such as LOG_LEVEL",), nearest=near)
    elif told := refused.get(name) or (_GIVEN if GIVEN.match(name) else ""):
        yield Problem(key=key, value=shown, reason=told, allowed=("any other variable",))


def _variables(entry: Entry[JobSpec] | Entry[ServiceSpec], key: str) -> dict[str, Plain]:
    found = entry.raw.get(key)
    return found if isinstance(found, dict) else {}


def _shown(name: str, value: Plain) -> Plain:
    return "[secret]" if is_secret_name(name) else without_secrets(value)

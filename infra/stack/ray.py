"""`tpu-ray:platform.ray`: what surrounds the Ray clusters of a GKE stack, and which KubeRay makes them."""

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from infra.stack import forms
from workloads.spec.secret import SECRET_KEY_PATTERN, SECRET_PATTERN
from workloads.spec.service import NAME_PATTERN

TOKENS_OPERATOR, TOKENS_RAY = "1.5.1", "2.52.0"
"""The first KubeRay with `authOptions`, and the first Ray that it takes them for
(ray-operator/controllers/ray/utils/validation.go). Before, KubeRay's own calls to the dashboard carry no token, so that
with one in the pods no service would come up and no run would end."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class GcsFaultTolerance(_Frozen):
    """A Redis of yours, in which the heads of services keep what they know. It outlives the services."""

    redis_address: str = Field(
        pattern=forms.REDIS, description="Where it answers, from inside the cluster: `redis.ml.svc:6379`."
    )
    password_secret: str | None = Field(
        default=None,
        pattern=SECRET_PATTERN,
        max_length=253,
        description="Name of the Kubernetes secret with its password, in the namespace of the workloads; absent: "
        "it has none.",
    )
    password_key: str = Field(default="password", pattern=SECRET_KEY_PATTERN, description="The key in that secret.")


class RaySpec(_Frozen):
    """The operator's version, and who may reach, evict or outlive the pods."""

    operator_version: str | None = Field(
        default=None,
        pattern=forms.OPERATOR_VERSION,
        description="KubeRay's version in the cluster. Absent: that of GKE's add-on, which Google does not publish; "
        "a newer one's fields are written then, and an older one ignores them.",
    )
    token_authentication: bool | None = Field(
        default=None,
        description="Whether Ray's own ports want a token, which KubeRay makes for each Ray cluster. Absent: wherever "
        f"KubeRay ({TOKENS_OPERATOR}) and Ray ({TOKENS_RAY}) can. The models' answers on port 8000 never want it.",
    )
    network_policy: bool = Field(
        default=True,
        description="Whether the pods of a service or a job are reached by each other only. Open from elsewhere: port "
        "8000 of services to everybody, the dashboard to KubeRay, metrics to `metrics_from`.",
    )
    metrics_from: tuple[Annotated[str, Field(pattern=NAME_PATTERN, max_length=63)], ...] = Field(
        default=("gke-gmp-system", "gmp-system"),
        max_length=20,
        description="Namespaces whose pods may read metrics on port 8080. Absent: those of Google's collectors.",
    )
    disruption_budgets: bool = Field(
        default=True,
        description="Whether a drained node waits before it evicts pods of a service: losing one host is losing the "
        "slice. GKE's upgrades wait for an hour at most.",
    )
    services_first: bool = Field(
        default=False,
        description="Whether waiting pods of services get machines before those of runs. Nothing that runs is evicted: "
        "Kubernetes cannot free the hosts of a slice together.",
    )
    gcs_fault_tolerance: GcsFaultTolerance | None = Field(
        default=None,
        description="Keeps services answering while their head is lost and comes back. Absent: a lost head ends them.",
    )


def authenticates(ray: RaySpec, ray_version: str) -> bool:
    """Whether the Ray clusters want a token."""
    if ray.token_authentication is not None:
        return ray.token_authentication
    return lacks_tokens(ray, ray_version) is None


def lacks_tokens(ray: RaySpec, ray_version: str) -> str | None:
    """Which version cannot have tokens, in words; None where both can."""
    if ray.operator_version and numbers(ray.operator_version) < numbers(TOKENS_OPERATOR):
        return f"operator_version: KubeRay {ray.operator_version} has none, {TOKENS_OPERATOR} is the first with them"
    if numbers(ray_version) < numbers(TOKENS_RAY):
        return f"ray_version: Ray {ray_version} has none, {TOKENS_RAY} is the first with them"
    return None


def numbers(version: str) -> tuple[int, ...]:
    """`1.33.0-gke.1712000` as (1, 33, 0, 1712000)."""
    return tuple(int(number) for number in re.findall(r"[0-9]+", version))

"""Rules about `platform.ray`: what the named versions of KubeRay and Ray cannot do."""

from collections.abc import Iterator, Sequence

from infra.stack.gke import GkePlatform
from infra.stack.model import LocalPlatform, PoolSpec
from infra.stack.problems import Problem
from infra.stack.ray import TOKENS_OPERATOR, TOKENS_RAY, lacks_tokens, numbers
from infra.stack.translate import Entry
from workloads.spec import ServiceSpec

Platform = Entry[LocalPlatform | GkePlatform]

OLDEST_OPERATOR = "1.3.0"
"""The first whose RayService has an `upgradeStrategy`: an older one's API server drops the field without a word."""
MULTI_HOST_OPERATOR = "1.4.0"
"""The first that counts the hosts of a slice: before, a RayCluster of several is never ready and a run never begins
(https://github.com/ray-project/kuberay/issues/3274)."""
RANGE_OPERATOR = "1.4.0"
"""The first with `autoscalerOptions.version`."""


def ray_problems(
    platform: Platform, pools: Sequence[Entry[PoolSpec]], services: Sequence[Entry[ServiceSpec]]
) -> Iterator[Problem]:
    """What is wrong between the keys of `ray`, and between them and the pools and services."""
    assert isinstance(platform.spec, GkePlatform)
    yield from _operator(platform, platform.spec, pools, services)
    yield from _tokens(platform, platform.spec)
    tolerant = platform.spec.ray.gcs_fault_tolerance is not None and platform.sound("ray.gcs_fault_tolerance")
    if tolerant and not services:
        yield Problem(
            key=f"{platform.key}.ray.gcs_fault_tolerance",
            reason="only the heads of services keep what they know, and the stack has no service",
            allowed=("only with services",),
        )


def _operator(
    entry: Platform, spec: GkePlatform, pools: Sequence[Entry[PoolSpec]], services: Sequence[Entry[ServiceSpec]]
) -> Iterator[Problem]:
    version = spec.ray.operator_version
    if version is None or not entry.sound("ray.operator_version"):
        return
    needs = [(OLDEST_OPERATOR, "how a service is upgraded")]
    for pool in pools:
        if (
            pool.spec is not None
            and pool.sound("generation", "topology", "machine_type")
            and pool.spec.slice.multi_host
        ):
            needs.append((MULTI_HOST_OPERATOR, f"{pool.key}.topology: {pool.spec.topology}, several hosts,"))
            break
    for service in services:
        if service.spec is not None and service.sound("replicas") and service.spec.replicas.moves:
            needs.append((RANGE_OPERATOR, f"{service.key}.replicas: {service.spec.replicas}, a range,"))
            break
    first, why = max(needs, key=lambda need: numbers(need[0]))
    if numbers(version) < numbers(first):
        yield Problem(
            key=f"{entry.key}.ray.operator_version",
            value=version,
            reason=f"{why} needs KubeRay {first} or newer",
            allowed=(f"{first} or newer",),
            nearest=first,
        )


def _tokens(entry: Platform, spec: GkePlatform) -> Iterator[Problem]:
    if spec.ray.token_authentication is not True:
        return
    if not entry.sound("ray.token_authentication", "ray.operator_version", "ray_version"):
        return
    if lacking := lacks_tokens(spec.ray, spec.ray_version):
        yield Problem(
            key=f"{entry.key}.ray.token_authentication",
            value=True,
            reason=lacking,
            allowed=("false", f"true with KubeRay {TOKENS_OPERATOR} and Ray {TOKENS_RAY} or newer"),
            nearest=False,
        )

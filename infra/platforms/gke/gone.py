"""Pulumi resource that is gone only when a service's Ray clusters are, with what they kept in Redis."""

import time
from typing import Any

import httpx
import pulumi
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

from infra.platforms.dynamic import reports_plainly, say
from infra.platforms.errors import PlatformError
from infra.platforms.gke.found import RAY_API, SERVICE_LABEL
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.gke.ready_resource import log_in

TIMEOUT_S, LOOK_EVERY_S = 900.0, 2.0
"""KubeRay ends its clean-up after 300 s, and pods have some seconds to end."""


class GoneProvider(ResourceProvider):
    """Waits, when it is deleted, until the service's Ray clusters are."""

    serialize_as_secret_always = False

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        changed = [key for key in ("service", "namespace", "login", "context") if olds.get(key) != news.get(key)]
        return DiffResult(changes=bool(changed), replaces=[key for key in changed if key in ("service", "namespace")])

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(f"{props['namespace']}/{props['service']}", props)

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(news)

    @reports_plainly
    def delete(self, _id: str, props: dict[str, Any]) -> None:
        kubernetes = log_in(props)
        try:
            wait_until_gone(kubernetes, props["namespace"], props["service"])
        finally:
            kubernetes.close()


def wait_until_gone(kubernetes: Kubernetes, namespace: str, service: str, timeout_s: float = TIMEOUT_S) -> None:
    """Return when no Ray cluster of the service is left.

    Raises:
        PlatformError: one is still there after `timeout_s` seconds, with what holds it.
    """
    ends, why, told = time.monotonic() + timeout_s, "", ""
    path = f"{RAY_API}/namespaces/{namespace}/rayclusters"
    mine = f"{SERVICE_LABEL}={service},ray.io/originated-from-crd=RayService"
    while True:
        try:
            left = kubernetes.every(path, labelSelector=mine)
        except httpx.HTTPError as error:
            why = f"the API server does not answer: {error}"
        else:
            if not left:
                return
            why = "; ".join(
                f"RayCluster {one['metadata']['name']} waits for {', '.join(one['metadata'].get('finalizers', []))}"
                for one in left
            )
        if why != told:
            say(f"{service}: {why}")
            told = why
        if time.monotonic() >= ends:
            break
        time.sleep(LOOK_EVERY_S)
    raise PlatformError(
        f"the Ray clusters of service {service} are still there after {timeout_s:.0f} s",
        key="tpu-ray:platform.ray.gcs_fault_tolerance",
        found=why,
        next_step="bring Redis and its secret back, or take the finalizer off the RayCluster and the keys out of Redis "
        "by hand (https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/kuberay-gcs-ft.html); then again",
    )


class Gone(Resource, module="gke", name="Gone"):
    """What a service with fault tolerance needs until its Ray clusters are gone has to stay behind this."""

    def __init__(
        self,
        name: str,
        *,
        login: pulumi.Input[str],
        context: str | None,
        namespace: str,
        service: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {"login": login, "context": context, "namespace": namespace, "service": service}
        super().__init__(GoneProvider(), name, props, opts)

"""When a service's slices are given back: when its last pod is gone, some time after its RayService is."""

import time

import httpx

from infra.plan.identity import SERVICE_LABEL
from infra.platforms.daily import Say
from infra.platforms.errors import PlatformError
from infra.platforms.gke.kubernetes_api import Kubernetes

TIMEOUT_S, PAUSE_S, TOLD_EVERY_S = 600.0, 1.0, 15.0


def wait_until_no_pods(
    kubernetes: Kubernetes, namespace: str, service: str, say: Say, timeout_s: float = TIMEOUT_S
) -> None:
    """Return when no pod of the service is left.

    Raises:
        PlatformError: there are some after `timeout_s` seconds, or the API server cannot be asked.
    """
    began = told = time.monotonic()
    while True:
        try:
            path = f"/api/v1/namespaces/{namespace}/pods"
            pods = kubernetes.every(path, labelSelector=f"{SERVICE_LABEL}={service}")
            found = ", ".join(str(pod["metadata"]["name"]) for pod in pods)
        except httpx.HTTPError as error:
            found = f"the API server cannot be asked: {error or type(error).__name__}"
        if not found:
            return
        now = time.monotonic()
        if now - began > timeout_s:
            raise PlatformError(
                f"service {service} still has pods after {timeout_s:.0f} s",
                wanted="none, so that its slices are free",
                found=found,
                next_step="look at what keeps them: finalizers, or a node that does not answer",
            )
        if now - told > TOLD_EVERY_S:
            told = now
            say(f"pods that end ({now - began:.0f} s): {found}")
        time.sleep(PAUSE_S)

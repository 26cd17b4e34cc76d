"""Ray's dashboard of a RayCluster, through the API server: what may ask the API server needs no other way in."""

import base64

from infra.platforms.gke.found import RAY_API
from infra.platforms.gke.kubernetes_api import Kubernetes
from infra.platforms.ray_rest import RayRest

DASHBOARD_PORT = 8265
TOKEN_KEY = "auth_token"
"""In the secret of a cluster with token authentication (RAY_AUTH_TOKEN_SECRET_KEY of KubeRay's constant.go)."""


def ray_of(kubernetes: Kubernetes, namespace: str, cluster: str) -> RayRest:
    """The dashboard of a Ray cluster that is there.

    The API server takes the `Authorization` header for itself; Ray takes its token also from another one.
    """
    found = kubernetes.get(f"{RAY_API}/namespaces/{namespace}/rayclusters/{cluster}") or {}
    options = (found.get("spec") or {}).get("authOptions") or {}
    ray_headers: dict[str, str] = {}
    if options.get("mode") == "token":
        secret = kubernetes.get(f"/api/v1/namespaces/{namespace}/secrets/{options.get('secretName') or cluster}") or {}
        if token := (secret.get("data") or {}).get(TOKEN_KEY):
            ray_headers["X-Ray-Authorization"] = f"Bearer {base64.b64decode(token).decode()}"
    return RayRest(
        kubernetes.client,
        f"/api/v1/namespaces/{namespace}/services/http:{cluster}-head-svc:{DASHBOARD_PORT}/proxy",
        lambda: {**kubernetes.headers(), **ray_headers},
        f"look at the head of Ray cluster {namespace}/{cluster}, which is there while its pod runs",
    )

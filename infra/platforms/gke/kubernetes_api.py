"""Reading from a cluster's API server, with whatever login a kubeconfig names."""

import ipaddress
import json
import ssl
from collections.abc import Container
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import httpx
import yaml
from kubernetes import client, config

from infra.platforms.gke.found import CLUSTER_LABEL, RAY_API, SERVICE_LABEL, Found, Object, when

TIMEOUT_S = 30.0


class Kubernetes:
    """One cluster. Every method raises `httpx.HTTPError` where the API server cannot be reached or refuses."""

    def __init__(self, kubeconfig: str, context: str | None = None) -> None:
        """Log in with a kubeconfig's text (YAML or JSON).

        Raises:
            kubernetes.config.ConfigException: the kubeconfig is none, or its login fails.
        """
        self._login = client.Configuration()
        config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]
            yaml.safe_load(kubeconfig), context=context, client_configuration=self._login, persist_config=False
        )
        trust = ssl.create_default_context(cafile=self._login.ssl_ca_cert)
        if not self._login.verify_ssl:
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        if self._login.cert_file:
            trust.load_cert_chain(self._login.cert_file, self._login.key_file)
        # As kubectl does: by the environment's proxy or the kubeconfig's, but never to this machine itself.
        far = not _is_here(str(self._login.host))
        self._client = httpx.Client(
            base_url=str(self._login.host),
            verify=trust,
            timeout=TIMEOUT_S,
            trust_env=far,
            proxy=self._login.proxy if far else None,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, path: str) -> Object | None:
        """The object at a path, e.g. `/apis/ray.io/v1/namespaces/default/rayservices/chat`; None where none is."""
        answer = self._get(path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        found: Object = answer.raise_for_status().json()
        return found

    def every(self, path: str, **query: str) -> list[Object]:
        """The objects of a list; `query` is e.g. `labelSelector`."""
        answer = self._get(path, **query)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return []
        found: list[Object] = answer.raise_for_status().json()["items"]
        return found

    def log(self, namespace: str, pod: str, container: str, lines: int) -> str:
        """The last lines that a container wrote; empty where it has not written or is gone."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        answer = self._get(path, container=container, tailLines=str(lines))
        return answer.text if answer.is_success else ""

    def through_service(self, namespace: str, service: str, port: int, path: str) -> httpx.Response:
        """GET a path of a service, from inside the cluster: the API server passes the request on."""
        return self._get(f"/api/v1/namespaces/{namespace}/services/http:{service}:{port}/proxy/{path}")

    @property
    def client(self) -> httpx.Client:
        """The connections; every request needs `headers`."""
        return self._client

    def headers(self) -> dict[str, str]:
        """The login. Asked for each time: a wait of hours outlives a token, and the plugin hands out the next one."""
        token = self._login.get_api_key_with_prefix("BearerToken", alias="authorization")
        return {"Authorization": token} if token else {}

    def stream(self, path: str, **query: str) -> AbstractContextManager[httpx.Response]:
        """GET an answer that goes on; nothing of it may come for a long time."""
        timeout = httpx.Timeout(TIMEOUT_S, read=None)
        return self._client.stream("GET", path, params=query, headers=self.headers(), timeout=timeout)

    def make(self, path: str, made: Object) -> Object:
        """Make an object in the list at a path."""
        return self._changed("POST", path, made, "application/json")

    def change(self, path: str, change: Object) -> Object:
        """Change an object: a JSON merge patch (RFC 7386), in which null takes a field away."""
        return self._changed("PATCH", path, change, "application/merge-patch+json")

    def delete(self, path: str) -> None:
        """Delete an object; nothing happens where it is gone."""
        answer = self._client.delete(path, headers=self.headers())
        if answer.status_code != httpx.codes.NOT_FOUND:
            answer.raise_for_status()

    def _changed(self, method: str, path: str, body: Object, content_type: str) -> Object:
        headers = {**self.headers(), "content-type": content_type}
        answer = self._client.request(method, path, content=json.dumps(body), headers=headers)
        changed: Object = answer.raise_for_status().json()
        return changed

    def _get(self, path: str, **query: str) -> httpx.Response:
        return self._client.get(path, params=query, headers=self.headers())


WRONG = ("type=Warning", "type=Normal,reason=NotTriggerScaleUp")
"""Field selectors. The autoscaler does not call it a warning that it makes no node for a pod:
https://github.com/kubernetes/autoscaler, cluster-autoscaler/processors/status/eventing_scale_up_processor.go
"""


def _is_here(url: str) -> bool:
    """Whether an address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def look_up(kubernetes: Kubernetes, namespace: str, service: str) -> Found:
    """Ask the API server.

    Raises:
        httpx.HTTPError: it cannot be reached or refuses.
    """
    found = kubernetes.get(f"{RAY_API}/namespaces/{namespace}/rayservices/{service}")
    clusters = kubernetes.every(
        f"{RAY_API}/namespaces/{namespace}/rayclusters", labelSelector=f"{SERVICE_LABEL}={service}"
    )
    names = {cluster["metadata"]["name"] for cluster in clusters}
    pods = kubernetes.every(f"/api/v1/namespaces/{namespace}/pods", labelSelector=CLUSTER_LABEL)
    mine = [pod for pod in pods if pod["metadata"]["labels"][CLUSTER_LABEL] in names]
    about = {service, *names, *(pod["metadata"]["name"] for pod in mine)}
    return Found(found, tuple(clusters), tuple(mine), warnings_about(kubernetes, namespace, about))


def warnings_about(kubernetes: Kubernetes, namespace: str, names: Container[str]) -> tuple[Object, ...]:
    """Events that say what is wrong with objects of these names, the newest first.

    Raises:
        httpx.HTTPError: it cannot be reached or refuses.
    """
    path = f"/api/v1/namespaces/{namespace}/events"
    events = [event for chosen in WRONG for event in kubernetes.every(path, fieldSelector=chosen)]
    mine = [event for event in events if event.get("involvedObject", {}).get("name") in names]
    return tuple(sorted(mine, key=when, reverse=True))

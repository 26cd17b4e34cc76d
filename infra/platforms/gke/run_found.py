"""What a cluster says about one RayJob: the object, its Ray cluster's pods, its driver's last words, its place in the
queue.
"""

from dataclasses import dataclass

from infra.platforms.gke.found import CLUSTER_LABEL, RAY_API, SERVICE_LABEL, Found, Object
from infra.platforms.gke.kubernetes_api import Kubernetes, warnings_about

SUBMITTER = "ray-job-submitter"
"""Container of the pod that hands a run to its Ray cluster and shows what the driver writes."""
LOG_LINES = 40
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True)
class FoundRun(Found):
    """One look at a RayJob."""

    log: str = ""
    """The last lines of the driver; empty where nobody has them."""
    queue: str = ""
    """What the run waits for in Kueue's queue, in its words; empty where it stands in none."""

    @property
    def run(self) -> Object | None:
        """The RayJob; None where it is gone."""
        return self.service


def look_up_run(kubernetes: Kubernetes, namespace: str, name: str) -> FoundRun:
    """Ask the API server.

    Raises:
        httpx.HTTPError: it cannot be reached or refuses.
    """
    run = kubernetes.get(f"{RAY_API}/namespaces/{namespace}/rayjobs/{name}")
    # A service may have the run's name.
    mine = f"{SERVICE_LABEL}={name},ray.io/originated-from-crd=RayJob"
    clusters = kubernetes.every(f"{RAY_API}/namespaces/{namespace}/rayclusters", labelSelector=mine)
    names = {cluster["metadata"]["name"] for cluster in clusters}
    pods = kubernetes.every(f"/api/v1/namespaces/{namespace}/pods", labelSelector=CLUSTER_LABEL)
    hosts = [pod for pod in pods if pod["metadata"]["labels"][CLUSTER_LABEL] in names]
    submitters = kubernetes.every(f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"job-name={name}")
    about = {name, *names, *(pod["metadata"]["name"] for pod in (*hosts, *submitters))}
    newest = max(submitters, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)
    log = kubernetes.log(namespace, newest["metadata"]["name"], SUBMITTER, LOG_LINES) if newest else ""
    return FoundRun(
        run,
        tuple(clusters),
        tuple(hosts),
        warnings_about(kubernetes, namespace, about),
        log=log,
        queue=_queue(kubernetes, namespace, run) if run else "",
    )


def _queue(kubernetes: Kubernetes, namespace: str, run: Object) -> str:
    uid = run["metadata"]["uid"]
    for workload in kubernetes.every(f"{WORKLOADS}/namespaces/{namespace}/workloads"):
        if any(owner.get("uid") == uid for owner in workload["metadata"].get("ownerReferences", [])):
            waits = [c for c in workload.get("status", {}).get("conditions", []) if c.get("status") == "False"]
            said = [str(c.get("message")) for c in waits if c.get("type") in ("QuotaReserved", "Admitted")]
            return said[0] if said else ""
    return ""

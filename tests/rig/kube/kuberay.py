"""A small double of the KubeRay operator: it makes the objects and writes the statuses that the operator would.

From its source, ray-operator/controllers/ray of 1.6.2: `rayservice_controller.go` (calculateStatus, reconcileServe),
`rayjob_controller.go`, `common/service.go`. Nothing runs in the pods; the serve service leads to a server of the test.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

from infra.plan.workloads import SERVE_IMPORT_PATH
from tests.rig.kube.control_plane import ControlPlane, control_plane
from tests.rig.kube.kuberay_jobs import JobCourse, reconcile_job
from tests.rig.kube.parts import KUBERAY
from tests.rig.kube.ray_clusters import annotations, asked, grown, new_beside, pods, same
from workloads.spec import ServiceLaunch

Json = dict[str, Any]
Course = Callable[["KubeRay", Json], Json]
"""What becomes of a RayService: from the object, after its pods are made, to its status."""
RAY = "/apis/ray.io/v1"
PAUSE_S = 0.3
CLUSTER_LABEL = "ray.io/cluster"
MERGE = {"content-type": "application/merge-patch+json"}


class KubeRay:
    """The operator of one control plane. `courses` says, by a service's name, what becomes of it; absent, it runs."""

    def __init__(self, plane: ControlPlane, address: str, port: int) -> None:
        self.client = plane.client()
        self.address, self.port = address, port
        self.courses: dict[str, Course] = {}
        self.job_courses: dict[str, JobCourse] = {}
        self.marks: dict[str, str] = {}
        """What each service answers with; a service that is not in it does not answer."""
        self.heads: dict[str, str] = {}
        self.most_pods: dict[str, int] = {}
        """TPU pods of each service while it had two Ray clusters."""

    def look(self) -> None:
        """One round over everything."""
        for service in self.every(f"{RAY}/rayservices"):
            self.reconcile_service(service)
        for job in self.every(f"{RAY}/rayjobs"):
            self.reconcile_job(job)

    def reconcile_service(self, service: Json) -> None:
        name, generation = service["metadata"]["name"], service["metadata"]["generation"]
        status = service.get("status", {})
        course = self.courses.get(name, runs)
        cluster = self.cluster_of(service)
        wanted = course(self, service)
        wanted |= {"observedGeneration": generation}
        if "activeServiceStatus" in wanted:
            wanted["activeServiceStatus"]["rayClusterName"] = cluster
        if any(status.get(key) != value for key, value in wanted.items()):
            self.write_status("rayservices", service, replacing(status, wanted))

    def cluster_of(self, service: Json) -> str:
        """The Ray cluster that is to serve, with a pod for the head and one for each host."""
        metadata, spec = service["metadata"], asked(service)
        clusters = f"{RAY}/namespaces/{metadata['namespace']}/rayclusters"
        mine = [one for one in self.every(clusters) if is_of(one, service)]
        if not mine:
            return self.make_cluster(service, 0)
        mine.sort(key=lambda one: int(one["metadata"]["name"].rpartition("-")[2]))
        newest: Json = mine[-1]
        name: str = newest["metadata"]["name"]
        if grown(newest, spec):
            change = {"metadata": {"annotations": annotations(spec)}, "spec": spec}
            self.client.patch(f"{clusters}/{name}", content=json.dumps(change), headers=MERGE).raise_for_status()
            self.make_pods(service, name, spec)
        elif not same(newest, spec) and new_beside(service):
            # The old one goes when the new one serves, which in this double is at once.
            name = self.make_cluster(service, int(name.rpartition("-")[2]) + 1)
            self.most_pods[metadata["name"]] = sum(is_worker(pod) for pod in self.pods_of(service))
            self.end_cluster(service, newest["metadata"]["name"])
        elif len(self.pods_of(service)) < len(pods(there := spec if same(newest, spec) else newest["spec"])):
            self.make_pods(service, name, there)
        return name

    def make_cluster(self, service: Json, number: int) -> str:
        metadata, spec = service["metadata"], asked(service)
        name = f"{metadata['name']}-{number}"
        path = f"{RAY}/namespaces/{metadata['namespace']}/rayclusters"
        if self.make(path, name, service, labels_of(service), annotations(spec), spec=spec):
            self.make_pods(service, name, spec)
        return name

    def make_pods(self, service: Json, cluster: str, spec: Json) -> None:
        """The pods of a Ray cluster of the service that are not there yet."""
        metadata = service["metadata"]
        for end, (group, template) in pods(spec).items():
            kind = "head" if group == "head" else "worker"
            labels = {CLUSTER_LABEL: cluster, "ray.io/group": group, "ray.io/node-type": kind}
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
            self.make(path, f"{cluster}-{end}", service, labels | labels_of(service), spec=template["spec"])

    def end_cluster(self, service: Json, cluster: str) -> None:
        namespace = service["metadata"]["namespace"]
        now = {"gracePeriodSeconds": "0"}
        for pod in self.pods_of(service):
            if pod["metadata"]["labels"][CLUSTER_LABEL] == cluster:
                self.client.delete(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}", params=now)
        self.client.delete(f"{RAY}/namespaces/{namespace}/rayclusters/{cluster}")

    def pods_of(self, service: Json) -> list[Json]:
        """The pods of all Ray clusters of the service."""
        found = self.every(f"/api/v1/namespaces/{service['metadata']['namespace']}/pods")
        return [pod for pod in found if is_of(pod, service)]

    def reconcile_job(self, job: Json) -> None:
        reconcile_job(self, job)

    def serve(self, service: Json) -> None:
        """Lead the serve service to the test's server, and let that answer as the application that is asked for."""
        self.run_pods(service)
        metadata = service["metadata"]
        name, namespace = f"{metadata['name']}-serve-svc", metadata["namespace"]
        port = {"name": "serve", "port": 8000, "protocol": "TCP"}
        if self.make(f"/api/v1/namespaces/{namespace}/services", name, service, {}, spec={"ports": [port]}):
            self.make(
                f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
                name,
                service,
                {"kubernetes.io/service-name": name},
                addressType="IPv4",
                ports=[{"name": "serve", "port": self.port}],
                endpoints=[{"addresses": [self.address], "conditions": {"ready": True}}],
            )
        head = f"{self.cluster_of(service)}-head-0"
        # The API server passes requests on only to the address of a pod that it knows.
        target = {"kind": "Pod", "name": head, "namespace": namespace}
        ends = {
            "addresses": [{"ip": self.address, "targetRef": target}],
            "ports": [{"name": "serve", "port": self.port}],
        }
        path = f"/api/v1/namespaces/{namespace}/endpoints"
        if not self.make(path, name, service, {}, subsets=[ends]) and self.heads.get(name) != head:
            self.client.patch(
                f"{path}/{name}", content=json.dumps({"subsets": [ends]}), headers=MERGE
            ).raise_for_status()
        self.heads[name] = head
        application, *marks = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
        bundled = application["import_path"] == SERVE_IMPORT_PATH
        mark = ServiceLaunch.model_validate(application["args"]).mark if bundled else marks[0]["args"]["mark"]
        self.marks[metadata["name"]] = mark

    def run_pods(self, service: Json) -> None:
        """Let the pods of the service run, at the test's address."""
        here = {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        status = {"phase": "Running", "conditions": None, "containerStatuses": None, **here}
        for pod in self.pods_of(service):
            # What runs the pods of deployments may have given it another address.
            if (pod["status"].get("phase"), pod["status"].get("podIP")) != ("Running", self.address):
                answer = self.client.patch(
                    f"/api/v1/namespaces/{service['metadata']['namespace']}/pods/{pod['metadata']['name']}/status",
                    content=json.dumps({"status": status}),
                    headers=MERGE,
                )
                assert answer.status_code in (200, 404), answer.text

    def warn(self, about: Json, reason: str, message: str) -> None:
        """A warning about an object, as an operator's recorder writes it."""
        metadata = about["metadata"]
        involved = {key: about[key] for key in ("apiVersion", "kind")} | {key: metadata[key] for key in ("name", "uid")}
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self.make(
            f"/api/v1/namespaces/{metadata['namespace']}/events",
            f"{metadata['name']}.{reason.lower()}.{metadata['generation']}",
            about,
            {},
            involvedObject={**involved, "namespace": metadata["namespace"]},
            reason=reason,
            message=message,
            type="Warning",
            firstTimestamp=now,
            lastTimestamp=now,
        )

    def make(self, path: str, name: str, owner: Json, labels: Json, notes: Json | None = None, **parts: Any) -> bool:
        """Make an object unless it is there; whether it was made."""
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        metadata = {"name": name, "labels": labels, "annotations": notes or {}, "ownerReferences": [reference]}
        body = {"metadata": metadata, **parts}
        if path.startswith(RAY):
            body |= {"apiVersion": "ray.io/v1", "kind": "RayCluster"}
        answer = self.client.post(path, json=body)
        assert answer.status_code in (201, 409), answer.text
        return answer.status_code == 201

    def every(self, path: str) -> list[Json]:
        answer = self.client.get(path)
        found: list[Json] = answer.json()["items"] if answer.is_success else []
        return found

    def write_status(self, plural: str, about: Json, status: Json) -> None:
        metadata = about["metadata"]
        path = f"{RAY}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}/status"
        answer = self.client.patch(path, content=json.dumps({"status": status}), headers=MERGE)
        assert answer.status_code in (200, 404, 409), answer.text


def labels_of(service: Json) -> dict[str, str]:
    name = service["metadata"]["name"]
    return {"ray.io/originated-from-cr-name": name, "ray.io/originated-from-crd": "RayService"}


def is_of(made: Json, service: Json) -> bool:
    """Whether it was made for this very RayService, and is not being deleted."""
    owners = made["metadata"].get("ownerReferences", [])
    mine = any(owner["uid"] == service["metadata"]["uid"] for owner in owners)
    return mine and "deletionTimestamp" not in made["metadata"]


def is_worker(pod: Json) -> bool:
    return bool(pod["metadata"]["labels"]["ray.io/node-type"] == "worker")


def replacing(before: Json, after: Json) -> Json:
    """A merge patch that leaves, below its own top, nothing of what was there before."""
    return {
        key: {**dict.fromkeys(before[key]), **replacing(before[key], value)}
        if isinstance(value, dict) and isinstance(before.get(key), dict)
        else value
        for key, value in after.items()
    }


def runs(kuberay: KubeRay, service: Json) -> Json:
    """Serve has the application, and it runs."""
    kuberay.serve(service)
    _, *marks = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    statuses = {service["metadata"]["name"]: "Llm", **{mark["name"]: mark["args"]["mark"] for mark in marks}}
    applications = {
        name: {"status": "RUNNING", "serveDeploymentStatuses": {deployment: {"status": "HEALTHY"}}}
        for name, deployment in statuses.items()
    }
    ready = condition("Ready", "True", "NonZeroServeEndpoints", "Number of serve endpoints is greater than 0")
    return {"conditions": [ready], "activeServiceStatus": {"applicationStatuses": applications}}


def fails(message: str) -> Course:
    """Serve gives the application up, with this message of its deployment."""

    def course(kuberay: KubeRay, service: Json) -> Json:
        kuberay.marks.pop(service["metadata"]["name"], None)
        deployments = {"Llm": {"status": "UNHEALTHY", "message": message}}
        application = {"status": "DEPLOY_FAILED", "serveDeploymentStatuses": deployments}
        waits = condition("Ready", "False", "ZeroServeEndpoints", "Number of serve endpoints dropped to 0")
        return {
            "conditions": [waits],
            "activeServiceStatus": {"applicationStatuses": {service["metadata"]["name"]: application}},
        }

    return course


def condition(kind: str, status: str, reason: str, message: str) -> Json:
    """A condition of an object's status. Its time is fixed: nothing here reads it."""
    since = "2026-01-01T00:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def own_address() -> str:
    """An address of this machine that the API server takes for a pod's: none of the loopback."""
    found = [a.address for them in psutil.net_if_addrs().values() for a in them if a.family.name == "AF_INET"]
    return next(address for address in found if not address.startswith("127."))


@contextmanager
def kuberay(plane: ControlPlane) -> Iterator[KubeRay]:
    """Run the double until the block ends; an error of its own is raised there."""
    address = own_address()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mark = operator.marks.get(self.path.strip("/").partition("/")[0])
            self.send_response(200 if mark else 503)
            self.end_headers()
            self.wfile.write(json.dumps({"status": "ok", "mark": mark}).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer((address, 0), Answer) as server:
        operator = KubeRay(plane, address, server.server_address[1])
        over, errors = threading.Event(), list[Exception]()

        def work() -> None:
            while not over.wait(PAUSE_S):
                try:
                    with suppress(httpx.TransportError):
                        operator.look()
                except Exception as error:
                    errors.append(error)
                    return

        threads = [threading.Thread(target=target) for target in (work, server.serve_forever)]
        for thread in threads:
            thread.start()
        try:
            yield operator
        finally:
            over.set()
            server.shutdown()
            for thread in threads:
                thread.join()
            operator.client.close()
        if errors:
            raise errors[0]


@contextmanager
def operated(folder: Path, release: str = KUBERAY[-1]) -> Iterator[ControlPlane]:
    """A control plane below `folder` whose Ray services run and whose jobs begin."""
    with control_plane(folder, release) as plane, kuberay(plane):
        yield plane

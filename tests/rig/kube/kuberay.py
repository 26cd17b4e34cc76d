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
from typing import Any

import httpx
import psutil
import yaml

from infra.plan.workloads import SERVE_IMPORT_PATH
from tests.rig.kube.control_plane import ControlPlane
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
        self.marks: dict[str, str] = {}
        """What each service answers with; a service that is not in it does not answer."""

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
        """The Ray cluster of a service, with a pod for the head and one for each host."""
        metadata, name = service["metadata"], f"{service['metadata']['name']}-x7k2p"
        spec = service["spec"]["rayClusterConfig"]
        labels = {"ray.io/originated-from-cr-name": metadata["name"], "ray.io/originated-from-crd": "RayService"}
        made = self.make(f"{RAY}/namespaces/{metadata['namespace']}/rayclusters", name, service, labels, spec=spec)
        if made:
            groups = {"head": (spec["headGroupSpec"], 1)}
            for group in spec["workerGroupSpecs"]:
                groups[group["groupName"]] = (group, group["replicas"] * group.get("numOfHosts", 1))
            for group_name, (group, count) in groups.items():
                for number in range(count):
                    kind = "head" if group_name == "head" else "worker"
                    pod_labels = {CLUSTER_LABEL: name, "ray.io/group": group_name, "ray.io/node-type": kind}
                    self.make(
                        f"/api/v1/namespaces/{metadata['namespace']}/pods",
                        f"{name}-{group_name}-{number}",
                        service,
                        pod_labels,
                        spec=group["template"]["spec"],
                    )
        return name

    def reconcile_job(self, job: Json) -> None:
        if not job.get("status"):
            self.write_status("rayjobs", job, {"jobDeploymentStatus": "Initializing"})

    def serve(self, service: Json) -> None:
        """Lead the serve service to the test's server, and let that answer as the application that is asked for."""
        metadata = service["metadata"]
        name, namespace = f"{metadata['name']}-serve-svc", metadata["namespace"]
        port = {"name": "serve", "port": 8000, "protocol": "TCP"}
        if self.make(f"/api/v1/namespaces/{namespace}/services", name, service, {}, spec={"ports": [port]}):
            ends = {"endpoints": [{"addresses": [self.address], "conditions": {"ready": True}}]}
            self.make(
                f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices",
                name,
                service,
                {"kubernetes.io/service-name": name},
                addressType="IPv4",
                ports=[{"name": "serve", "port": self.port}],
                **ends,
            )
            head = self.run_head(service)
            # The API server passes requests on only to the address of a pod that it knows.
            target = {"kind": "Pod", "name": head, "namespace": namespace}
            subset = {
                "addresses": [{"ip": self.address, "targetRef": target}],
                "ports": [{"name": "serve", "port": self.port}],
            }
            self.make(f"/api/v1/namespaces/{namespace}/endpoints", name, service, {}, subsets=[subset])
        application, *marks = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
        bundled = application["import_path"] == SERVE_IMPORT_PATH
        mark = ServiceLaunch.model_validate(application["args"]).mark if bundled else marks[0]["args"]["mark"]
        self.marks[metadata["name"]] = mark

    def run_head(self, service: Json) -> str:
        """Let the head of the service's cluster run, at the test's address; its name."""
        name, namespace = f"{self.cluster_of(service)}-head-0", service["metadata"]["namespace"]
        status = {"phase": "Running", "podIP": self.address, "podIPs": [{"ip": self.address}]}
        answer = self.client.patch(
            f"/api/v1/namespaces/{namespace}/pods/{name}/status",
            content=json.dumps({"status": status}),
            headers=MERGE,
        )
        assert answer.is_success, answer.text
        return name

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

    def make(self, path: str, name: str, owner: Json, labels: Json, **parts: Any) -> bool:
        """Make an object unless it is there; whether it was made."""
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        metadata = {"name": name, "labels": labels, "ownerReferences": [reference]}
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

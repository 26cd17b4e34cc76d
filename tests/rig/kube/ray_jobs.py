"""A small double of KubeRay's controller of RayJobs, over a Ray cluster of the test's own.

From its source, ray-operator/controllers/ray/rayjob_controller.go of 1.5.1 and 1.6.2: the states in their order, and
that `suspend` is looked at while a run initializes or runs, not while it waits for a submission.
"""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.rig.kube.control_plane import ControlPlane
from tests.rig.kube.kuberay import CLUSTER_LABEL, MERGE, RAY, own_address

Json = dict[str, Any]
PAUSE_S = 0.2
SUSPENDED = {
    "jobDeploymentStatus": "Suspended",
    "jobStatus": "",
    "rayClusterName": None,
    "dashboardURL": None,
    "jobId": None,
}


class RayJobs:
    """`without_slice` are the runs whose pods find no node."""

    def __init__(self, plane: ControlPlane, ray_port: int, token: str) -> None:
        self.client = plane.client()
        self.address, self.ray_port, self.token = own_address(), ray_port, token
        self.without_slice: set[str] = set()

    def look(self) -> None:
        """One round over everything."""
        answer = self.client.get(f"{RAY}/rayjobs")
        for job in answer.json()["items"] if answer.is_success else []:
            if "deletionTimestamp" not in job["metadata"]:
                self.reconcile(job)

    def reconcile(self, job: Json) -> None:
        metadata, spec, status = job["metadata"], job["spec"], job.get("status") or {}
        where, interactive = status.get("jobDeploymentStatus", ""), spec.get("submissionMode") == "InteractiveMode"
        if where in ("Initializing", "Running") and spec.get("suspend"):
            path = f"{RAY}/namespaces/{metadata['namespace']}/rayclusters/{status['rayClusterName']}"
            self.client.delete(path)
            self.write(job, SUSPENDED)
        elif not where:
            begun = {"jobDeploymentStatus": "Initializing", "rayClusterName": f"{metadata['name']}-abcde"}
            self.write(job, begun if interactive else {**begun, "jobId": metadata["name"]})
        elif where == "Initializing":
            self.make_cluster(job, status["rayClusterName"])
            if metadata["name"] not in self.without_slice:
                after = {"jobDeploymentStatus": "Waiting"} if interactive else RUNNING
                self.write(job, {**after, "dashboardURL": f"{status['rayClusterName']}-head-svc:8265"})
        elif where == "Waiting" and spec.get("jobId"):
            self.write(job, {**RUNNING, "jobId": spec["jobId"]})
        elif where == "Running" and interactive:
            self.follow(job, status["jobId"])

    def follow(self, job: Json, job_id: str) -> None:
        """Write down how far the run is in Ray."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"http://{self.address}:{self.ray_port}/api/jobs/{job_id}"
        told = httpx.get(url, headers=headers, trust_env=False, timeout=30).json()
        ended = {"SUCCEEDED": "Complete", "STOPPED": "Complete", "FAILED": "Failed"}.get(told["status"], "Running")
        reason = "AppFailed" if ended == "Failed" else ""
        self.write(
            job,
            {
                "jobStatus": told["status"],
                "jobDeploymentStatus": ended,
                "reason": reason,
                "message": told.get("message") or "",
            },
        )

    def make_cluster(self, job: Json, name: str) -> None:
        """The Ray cluster of a run, whose head is the test's Ray."""
        namespace, cluster = job["metadata"]["namespace"], {CLUSTER_LABEL: name, "ray.io/node-type": "head"}
        owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "uid": job["metadata"]["uid"]}
        metadata = {"name": name, "ownerReferences": [{**owner, "name": job["metadata"]["name"]}]}
        spec = job["spec"]["rayClusterSpec"]
        body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}
        made = self.client.post(f"{RAY}/namespaces/{namespace}/rayclusters", json=body)
        if made.status_code == httpx.codes.CONFLICT:
            return
        assert made.is_success, made.text
        uid = made.json()["metadata"]["uid"]
        owned = {"ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "uid": uid}]}
        v1, head = f"/api/v1/namespaces/{namespace}", f"{name}-head"
        self.post(f"{v1}/secrets", name, owned, data={"auth_token": base64.b64encode(self.token.encode()).decode()})
        pod = spec["headGroupSpec"]["template"]["spec"]
        self.post(f"{v1}/pods", head, {**owned, "labels": cluster}, spec=pod)
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: no TPU"}
        here = {"phase": "Running", "podIP": self.address, "podIPs": [{"ip": self.address}]}
        lacks = job["metadata"]["name"] in self.without_slice
        status = {"phase": "Pending", "conditions": [waits]} if lacks else here
        patched = self.client.patch(f"{v1}/pods/{head}/status", content=json.dumps({"status": status}), headers=MERGE)
        assert patched.is_success, patched.text
        port = {"name": "dashboard", "port": 8265, "protocol": "TCP"}
        self.post(f"{v1}/services", f"{head}-svc", owned, spec={"ports": [port]})
        target = {"kind": "Pod", "name": head, "namespace": namespace}
        ends = {
            "addresses": [{"ip": self.address, "targetRef": target}],
            "ports": [{"name": "dashboard", "port": self.ray_port}],
        }
        self.post(f"{v1}/endpoints", f"{head}-svc", owned, subsets=[ends])
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        labels = {"kubernetes.io/service-name": f"{head}-svc"}
        self.post(
            slices,
            f"{head}-svc",
            {**owned, "labels": labels},
            addressType="IPv4",
            ports=[{"name": "dashboard", "port": self.ray_port}],
            endpoints=[{"addresses": [self.address], "conditions": {"ready": True}}],
        )

    def post(self, path: str, name: str, metadata: Json, **parts: Any) -> None:
        answer = self.client.post(path, json={"metadata": {"name": name, **metadata}, **parts})
        assert answer.is_success, answer.text

    def write(self, job: Json, status: Json) -> None:
        metadata, before = job["metadata"], job.get("status") or {}
        if all(before.get(key) == value for key, value in status.items()):
            return
        path = f"{RAY}/namespaces/{metadata['namespace']}/rayjobs/{metadata['name']}/status"
        answer = self.client.patch(path, content=json.dumps({"status": status}), headers=MERGE)
        assert answer.status_code in (200, 404, 409), answer.text


RUNNING = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}


@contextmanager
def ray_jobs(plane: ControlPlane, ray_port: int, token: str) -> Iterator[RayJobs]:
    """Run the double until the block ends; an error of its own is raised there."""
    operator, over, errors = RayJobs(plane, ray_port, token), threading.Event(), list[Exception]()

    def work() -> None:
        while not over.wait(PAUSE_S):
            try:
                operator.look()
            except Exception as error:
                errors.append(error)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield operator
    finally:
        over.set()
        thread.join()
        operator.client.close()
    if errors:
        raise errors[0]

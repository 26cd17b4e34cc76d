"""What is read from a RayService, its pods and their events, as KubeRay 1.5 and 1.6 and Kubernetes write them."""

from typing import Any

import pytest

from infra.platforms.gke.found import Found
from infra.platforms.gke.look import Wanted, blocked_by, look

WANTED = Wanted("chat", "ml", hosts=4)
CLUSTER = "chat-x7k2p"
APPLIED = "2026-05-01T10:00:00Z"
Json = dict[str, Any]

# As Ray 2.60 gives it for a replica whose constructor raised.
CONSTRUCTOR = """Failed to update the deployments ['Llm'].
The deployment failed to start 3 times in a row. This may be due to a problem with its constructor.
Traceback (most recent call last):
  File "workloads/serve/app.py", line 48, in __init__
FileNotFoundError: no model at /no/such/folder"""


def service(status: Json, generation: int = 2) -> Json:
    applied = {"manager": "pulumi-kubernetes", "operation": "Apply", "time": APPLIED}
    written = {"manager": "manager", "operation": "Update", "subresource": "status", "time": "2026-05-01T10:30:00Z"}
    metadata = {
        "name": "chat",
        "namespace": "ml",
        "generation": generation,
        "creationTimestamp": "2026-05-01T09:00:00Z",
        "managedFields": [applied, written],
    }
    return {"metadata": metadata, "status": status}


def status(application: Json | None = None, ready: str = "False", pending: str = "", observed: int = 2) -> Json:
    part: Json = {"rayClusterName": CLUSTER}
    if application is not None:
        part["applicationStatuses"] = {"chat": application}
    conditions = [{"type": "Ready", "status": ready, "reason": "ZeroServeEndpoints", "message": "no endpoints yet"}]
    found: Json = {"observedGeneration": observed, "conditions": conditions, "activeServiceStatus": part}
    if pending:
        found["pendingServiceStatus"] = {"rayClusterName": pending}
    return found


def pod(name: str = "chat-x7k2p-tpu-0", kind: str = "worker", cluster: str = CLUSTER, **status: Any) -> Json:
    return {
        "metadata": {"name": name, "labels": {"ray.io/cluster": cluster, "ray.io/node-type": kind}},
        "status": status,
    }


def waiting(reason: str, message: str = "", **more: Any) -> Json:
    container = {"name": "ray-worker", "state": {"waiting": {"reason": reason, "message": message}}, **more}
    return pod(phase="Pending", containerStatuses=[container])


def event(kind: str, name: str, reason: str, message: str, at: str = "2026-05-01T10:00:05Z") -> Json:
    return {
        "metadata": {"creationTimestamp": at},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def found(status: Json, pods: tuple[Json, ...] = (), events: tuple[Json, ...] = ()) -> Found:
    return Found(service(status), (), pods, events)


HOSTS = tuple(pod(f"chat-x7k2p-tpu-{host}", phase="Running") for host in range(4))


def test_it_is_ready_when_serve_runs_it_and_endpoints_are_there() -> None:
    assert look(WANTED, found(status({"status": "RUNNING"}, ready="True"), HOSTS)).there


def test_a_replica_more_is_waited_for_also_while_serve_has_not_heard_of_it() -> None:
    looked = look(WANTED, found(status({"status": "RUNNING"}, ready="True"), HOSTS[:2]))
    assert not looked.there
    assert "2 of 4 TPU hosts run" in looked.progress


@pytest.mark.parametrize(
    ("seen", "progress"),
    [
        (status({"status": "RUNNING"}, ready="True", observed=1), "waiting for KubeRay to see the change"),
        (status({"status": "RUNNING"}, ready="False"), "Serve is RUNNING"),
        (status({"status": "RUNNING"}, ready="True", pending="chat-new22"), "Ray cluster chat-new22: head missing"),
        (
            status({"status": "DEPLOYING", "message": "1 replica is starting"}),
            "Serve is DEPLOYING: 1 replica is starting",
        ),
        ({"observedGeneration": 2}, "waiting for KubeRay to make the Ray cluster"),
    ],
)
def test_it_is_not_ready_before(seen: Json, progress: str) -> None:
    looked = look(WANTED, found(seen, HOSTS))
    assert not looked.there
    assert looked.failure is None
    assert looked.progress.startswith(progress)


def test_progress_counts_the_hosts_that_run_and_says_what_the_first_waits_for() -> None:
    pods = (
        pod("chat-x7k2p-head", "head", phase="Running"),
        pod("chat-x7k2p-tpu-0", phase="Running"),
        pod("chat-x7k2p-tpu-1", phase="Pending"),
        pod("other-tpu-0", cluster="other", phase="Pending"),
    )
    looked = look(WANTED, found(status(), pods))
    assert looked.progress == ("Ray cluster chat-x7k2p: head Running, 1 of 4 TPU hosts run; is Pending")


def test_serves_own_reason_is_the_failure() -> None:
    application = {
        "status": "DEPLOY_FAILED",
        "message": "Failed to deploy app 'chat'",
        "serveDeploymentStatuses": {"Llm": {"status": "DEPLOY_FAILED", "message": CONSTRUCTOR}},
    }
    looked = look(WANTED, found(status(application)))
    assert looked.failure == "DEPLOY_FAILED: FileNotFoundError: no model at /no/such/folder"


def test_a_service_that_is_gone_has_failed() -> None:
    assert look(WANTED, Found(None)).failure == "the RayService ml/chat is not there any more"


def test_what_kuberay_refuses_fails_with_its_words() -> None:
    message = "ml/chat: The RayService spec is invalid: spec.upgradeStrategy.type is invalid"
    refused = event("RayService", "chat", "InvalidRayServiceSpec", message)
    assert look(WANTED, found({}, events=(refused,))).failure == f"KubeRay refuses it: {message}"


def test_what_kuberay_refused_of_the_spec_before_is_over() -> None:
    before = event("RayService", "chat", "InvalidRayServiceSpec", "old", at="2026-05-01T09:59:59Z")
    assert look(WANTED, found(status(), events=(before,))).failure is None


def test_a_service_that_kuberay_gave_up_has_failed() -> None:
    seen = status()
    seen["conditions"][0] |= {"reason": "InitializingTimeout", "message": "did not start within 30m0s"}
    assert look(WANTED, found(seen)).failure == "KubeRay has given it up: did not start within 30m0s"


@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "ray-tpu.gke.io" denied the request: missing TPU topology selector',
        "Internal error occurred: failed calling webhook: Failed to validate RayCluster",
        "pods is forbidden: exceeded quota: tpu",
    ],
)
def test_pods_that_admission_refuses_never_come(message: str) -> None:
    refused = event("RayCluster", CLUSTER, "FailedToCreateWorkerPod", message)
    assert look(WANTED, found(status(), events=(refused,))).failure == f"FailedToCreateWorkerPod: {message}"


def test_a_worker_that_could_not_be_made_for_another_reason_is_tried_again() -> None:
    failed = event("RayCluster", CLUSTER, "FailedToCreateWorkerPod", "etcdserver: request timed out")
    assert look(WANTED, found(status(), events=(failed,))).failure is None


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ImagePullBackOff", 'Back-off pulling image "app:2": manifest unknown'),
        ("ErrImagePull", "failed to resolve reference: docker.io/x/app:2: not found"),
        ("ErrImagePull", "failed to authorize: 403 Forbidden"),
        ("InvalidImageName", "couldn't parse image name"),
        ("CreateContainerConfigError", 'secret "tpu-ray-hub" has no such key'),
    ],
)
def test_a_container_that_never_starts_fails_in_its_own_words(reason: str, message: str) -> None:
    looked = look(WANTED, found(status(), (waiting(reason, message),)))
    assert looked.failure == f"pod chat-x7k2p-tpu-0 waits in container ray-worker: {reason}: {message}"


def test_an_image_that_is_slow_to_come_is_waited_for() -> None:
    looked = look(WANTED, found(status(), (waiting("ErrImagePull", "dial tcp: i/o timeout"),)))
    assert looked.failure is None
    assert "ErrImagePull: dial tcp: i/o timeout" in looked.progress


def test_a_back_off_says_in_its_events_that_the_image_is_not_there() -> None:
    stuck = waiting("ImagePullBackOff", 'Back-off pulling image "app:2"')
    said = event("Pod", "chat-x7k2p-tpu-0", "Failed", "Failed to pull image: app:2: not found")
    failure = look(WANTED, found(status(), (stuck,), (said,))).failure
    assert failure is not None
    assert "ImagePullBackOff" in failure


def test_at_the_deadline_a_pod_that_finds_no_node_says_why_also_in_the_autoscalers_words() -> None:
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/3 nodes are available: 3 Insufficient google.com/tpu.",
    }
    stuck = pod(phase="Pending", conditions=[unscheduled])
    scaling = event(
        "Pod", "chat-x7k2p-tpu-0", "FailedScaleUp", "Node scale up in zones us-east5-b failed: GCE out of resources"
    )
    resting = event("Pod", "chat-x7k2p-tpu-0", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff")
    pending = "pod chat-x7k2p-tpu-0 cannot be scheduled: 0/3 nodes are available: 3 Insufficient google.com/tpu. "
    for events, words in (
        ((scaling,), "(Node scale up in zones us-east5-b failed: GCE out of resources)"),
        # The newest comes first, and says less.
        ((resting, scaling), "(Node scale up in zones us-east5-b failed: GCE out of resources)"),
        ((resting,), "(pod didn't trigger scale-up: 1 in backoff)"),
    ):
        assert blocked_by(WANTED, found(status(), (stuck,), events)) == pending + words


def test_at_the_deadline_a_crash_says_how_it_ended() -> None:
    crashing = waiting(
        "CrashLoopBackOff",
        "back-off 40s restarting failed container",
        lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    )
    assert blocked_by(WANTED, found(status(), (crashing,))).endswith(
        "CrashLoopBackOff: back-off 40s restarting failed container; it ended before with code 137 (OOMKilled)"
    )


def test_while_hosts_are_missing_serves_patience_hides_nothing() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    pods = (*HOSTS[:3], pod(phase="Pending", conditions=[unscheduled]))
    slow = {"status": "DEPLOYING", "message": "Deployment 'Replica' has 1 replicas that have taken more than 30s"}
    waits = "cannot be scheduled: 0/1 nodes are available"
    seen = found(status(slow), pods)
    assert look(WANTED, seen).progress.endswith(f"3 of 4 TPU hosts run; {waits}")
    assert blocked_by(WANTED, seen) == f"pod chat-x7k2p-tpu-0 {waits}; Serve is DEPLOYING: {slow['message']}"
    failed = found(status({"status": "DEPLOY_FAILED", "message": "no model"}), pods)
    assert blocked_by(WANTED, failed) == "Serve is DEPLOY_FAILED: no model"


def test_what_a_container_waits_for_is_not_what_its_pod_waited_for_before() -> None:
    creating = waiting("ContainerCreating", "")
    for_a_node = event("Pod", "chat-x7k2p-tpu-0", "FailedScheduling", "0/3 nodes are available")
    for_a_volume = event("Pod", "chat-x7k2p-tpu-0", "FailedMount", "bucket does not exist")
    said = blocked_by(WANTED, found(status(), (creating,), (for_a_node, for_a_volume)))
    assert said.endswith("ContainerCreating: bucket does not exist")
    assert blocked_by(WANTED, found(status(), (creating,), (for_a_node,))).endswith("ContainerCreating")


def test_at_the_deadline_serve_is_quoted_before_anything_else() -> None:
    application = {"status": "DEPLOYING", "message": "Deployment 'Llm' has 1 replica that waits for resources"}
    assert blocked_by(WANTED, found(status(application))) == (
        "Serve is DEPLOYING: Deployment 'Llm' has 1 replica that waits for resources"
    )


def test_without_an_operator_the_add_on_is_named() -> None:
    assert "is the Ray operator add-on of the cluster on?" in blocked_by(WANTED, found({}))

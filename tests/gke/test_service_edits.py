"""What an edit of the stack file does to services and jobs: on the engine, in the plan's words, and in the cluster."""

import re
from collections.abc import Iterator
from datetime import date

import pytest

from infra.automation.operate import Outcome
from infra.plan.against import against
from infra.plan.identity import CLUSTER
from infra.platforms.service_changes import service_changes
from infra.stack import GkePlatform, parse_stack
from tests.gke.room_edits import EDITS
from tests.gke.service_edits import ServiceEdit, start
from tests.rig.gke import WORKLOADS, GkeCheckout
from tests.rig.kube.control_plane import control_plane
from tests.rig.kube.kuberay import RAY, KubeRay, kuberay

pytestmark = pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GkeCheckout, KubeRay]]:
    folder = tmp_path_factory.mktemp("service-edits")
    with control_plane(folder / "plane") as plane, kuberay(plane) as operator:
        stack = GkeCheckout(folder, "dev", plane, start())
        up = stack.operate("up")
        assert up.ok, up.failures
        yield stack, operator


def told(outcome: Outcome) -> list[str]:
    """One sorted line for each RayService and RayJob that does not stay as it is, with what of it differs."""
    lines = set()
    for step in outcome.steps:
        operation, resource = step["op"], step["resource"]
        object_itself = resource.startswith(WORKLOADS) and "kubernetes:ray.io" in step["urn"]
        if not object_itself or operation in ("same", "read", "refresh", "create-replacement", "delete-replaced"):
            continue
        parts = sorted({part(key) for key in step["keys"].split(", ") if key})
        # What makes a slice or the head another has its mark, beside everything that it is about.
        shown = [one for one in parts if "cluster" not in parts or not one.startswith(("spec.rayCluster", "slice"))]
        lines.add(f"{operation} {resource}" + (f": {', '.join(shown)}" if operation in ("update", "replace") else ""))
    return sorted(lines)


def part(key: str) -> str:
    """A property in fewer words."""
    words = {CLUSTER: "cluster", "serveConfigV2": "serve", "upgradeStrategy.type": "strategy"}
    short = key.removeprefix("metadata.annotations.").removeprefix("spec.")
    group = re.match(r"rayClusterConfig\.workerGroupSpecs\[(\d+)\]", short)
    return f"slice {group[1]}" if group else words.get(short, key)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.keys)
def test_the_plan_says_what_becomes_of_services(edit: ServiceEdit) -> None:
    config = start()
    edit.change(config)
    before, after = parse_stack(start()), parse_stack(config)
    found = service_changes(before, after)
    assert {one.service: (one.fate, one.answers, one.peak_chips) for one in found if one.fate != "same"} == edit.told
    compared = against("dev", "main", before, after, date(2026, 12, 2), services=found)
    assert compared.services == found


@pytest.mark.rig
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.keys)
def test_the_engine_does_what_the_table_says(both: tuple[GkeCheckout, KubeRay], edit: ServiceEdit) -> None:
    config = start()
    edit.change(config)
    outcome = both[0].with_config(config).operate("preview")
    assert outcome.ok, outcome.failures
    assert told(outcome) == sorted(edit.expected)


@pytest.mark.rig
@pytest.mark.parametrize("edit", [edit for edit in EDITS if edit.up], ids=lambda edit: edit.keys)
def test_the_cluster_ends_with_what_the_file_says(both: tuple[GkeCheckout, KubeRay], edit: ServiceEdit) -> None:
    """No change is taken and then not rolled out; two Ray clusters only where the plan said so."""
    stack, operator = both
    config = start()
    edit.change(config)
    before, after = parse_stack(start()), parse_stack(config)
    operator.most_pods.clear()
    assert stack.with_config(config).operate("up").ok
    wanted = {
        (service.name, number, host)
        for service in after.services
        for number in range(service.replicas.min)
        for host in range(after.pool(service.pool).slice.hosts)
    }
    pods = [pod for pod in stack.plane.every("/api/v1/pods") if "ray.io/cluster" in pod["metadata"]["labels"]]
    workers = [pod for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "worker"]
    assert len(workers) == len(wanted)
    assert isinstance(after.platform, GkePlatform)
    assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {after.platform.image}
    beside = {one.service: one.peak_chips for one in service_changes(before, after) if one.fate == "beside"}
    chips = {service.name: after.pool(service.pool).slice.chips_per_host for service in after.services}
    assert {name: count * chips[name] for name, count in operator.most_pods.items()} == beside
    assert {one["metadata"]["name"] for one in stack.plane.every(f"{RAY}/rayjobs")} == {
        f"{job.name}-{job.run}" for job in after.jobs
    }
    assert stack.with_config(start()).operate("up").ok

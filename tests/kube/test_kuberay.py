"""KubeRay's definitions on the real API server: what tpu-ray writes is taken as it stands, a wrong field is refused."""

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, StackSpec, load_stack, parse_stack
from tests.render.stacks import GKE, config
from tests.rig.cloud.control_plane import read_control_plane
from tests.rig.cloud.kubernetes_side import DEFINITIONS, ApiServer
from tests.rig.kube.control_plane import ControlPlane, control_plane
from tests.rig.kube.parts import KUBERAY, kuberay_crds

pytestmark = pytest.mark.rig

STACKS = Path(__file__).parents[2] / "stacks"
DEADLINE_S = 60.0
KINDS = {"1.5.1": {"RayCluster", "RayJob", "RayService"}, "1.6.2": {"RayCluster", "RayCronJob", "RayJob", "RayService"}}
"""What each release defines: `config/crd/bases` of its module."""


def on_gke(settings: dict[str, Any]) -> StackSpec:
    return parse_stack({**settings, "tpu-ray:platform": GKE})


def stacks() -> dict[str, StackSpec]:
    """The project's stacks, the one that the pages show, and one with every form of pool."""
    shown = yaml.safe_load((STACKS / "Pulumi.local.yaml").read_text())["config"]
    return {
        **{name: load_stack(STACKS / f"Pulumi.{name}.yaml") for name in ("dev", "staging", "prod")},
        "shown in the pages": on_gke(shown),
        "rendered in tests": parse_stack(config()),
    }


@pytest.fixture(scope="module", params=KUBERAY)
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with the definitions of one release, as GKE's add-on brings them."""
    folder = tmp_path_factory.mktemp("kuberay")
    with control_plane(folder / "plane", request.param) as made:
        made.hand_out(folder)
        given = read_control_plane(folder)
        assert given is not None
        ApiServer(given).install_definitions(kuberay_crds(request.param))
        wait_until_established(made)
        yield made


def conditions(plane: ControlPlane) -> dict[str, dict[str, str]]:
    """Kind to the conditions of its definition; of a new one they are null."""
    return {
        one["spec"]["names"]["kind"]: {
            condition["type"]: condition["status"] for condition in one["status"]["conditions"] or ()
        }
        for one in plane.every(DEFINITIONS)
    }


def wait_until_established(plane: ControlPlane) -> None:
    until = time.monotonic() + DEADLINE_S
    while any(found.get("Established") != "True" for found in conditions(plane).values()):
        assert time.monotonic() < until, conditions(plane)
        time.sleep(0.1)


def applied(plane: ControlPlane, manifest: Any) -> httpx.Response:
    """The answer to a strict creation that is only tried. The stack's namespace is made when it is missing."""
    group, namespace = manifest["apiVersion"], manifest["metadata"]["namespace"]
    with plane.client() as client:
        made = client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}})
        assert made.status_code in (201, 409)
        return client.post(
            f"/apis/{group}/namespaces/{namespace}/{manifest['kind'].lower()}s",
            params={"fieldValidation": "Strict", "dryRun": "All"},
            json=manifest,
        )


def test_the_definitions_of_the_release_are_established(plane: ControlPlane) -> None:
    found = conditions(plane)
    assert set(found) == KINDS[plane.kuberay]
    for kind in found:
        assert found[kind]["Established"] == found[kind]["NamesAccepted"] == "True"
        # Where the API server doubts a schema it says so here, and does not check by it.
        assert "NonStructuralSchema" not in found[kind]


@pytest.mark.parametrize("stack", stacks())
def test_what_is_rendered_is_taken_as_it_stands(plane: ControlPlane, stack: str) -> None:
    spec = stacks()[stack]
    assert isinstance(spec.platform, GkePlatform)
    rendered = manifests(spec.platform, spec)
    assert len(rendered) == len(spec.services) + len(spec.jobs)
    for name, manifest in rendered.items():
        answer = applied(plane, manifest)
        assert answer.status_code == 201, (name, answer.text)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"numHosts": 4}, 'unknown field "spec.rayClusterConfig.workerGroupSpecs[0].numHosts"'),
        ({"replicas": "1"}, "spec.rayClusterConfig.workerGroupSpecs[0].replicas"),
        ({"groupName": None}, "spec.rayClusterConfig.workerGroupSpecs[0].groupName: Required value"),
    ],
    ids=["unknown", "mistyped", "missing"],
)
def test_a_wrong_field_is_refused_by_its_name(plane: ControlPlane, wrong: dict[str, object], word: str) -> None:
    spec = parse_stack(config())
    assert isinstance(spec.platform, GkePlatform)
    manifest: Any = copy.deepcopy(manifests(spec.platform, spec)["rayservice-chat.yaml"])
    group = manifest["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
    group.update(wrong)
    manifest["spec"]["rayClusterConfig"]["workerGroupSpecs"][0] = {k: v for k, v in group.items() if v is not None}
    answer = applied(plane, manifest)
    assert answer.status_code in (400, 422), answer.text
    assert word in answer.json()["message"]


def test_an_unknown_field_that_is_not_checked_is_lost(plane: ControlPlane) -> None:
    """Why the strict check matters: the API server takes such an object, and drops the field."""
    spec = parse_stack(config())
    assert isinstance(spec.platform, GkePlatform)
    manifest: Any = copy.deepcopy(manifests(spec.platform, spec)["rayservice-chat.yaml"])
    manifest["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]["numHosts"] = 4
    assert applied(plane, manifest).status_code == 400
    path = f"/apis/ray.io/v1/namespaces/{manifest['metadata']['namespace']}/rayservices"
    with plane.client() as client:
        answer = client.post(path, params={"fieldValidation": "Ignore", "dryRun": "All"}, json=manifest)
    assert answer.status_code == 201, answer.text
    assert "numHosts" not in answer.json()["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]

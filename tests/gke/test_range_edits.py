"""What an edit does to services whose replicas come and go: in the plan's words, and on the engine."""

from collections.abc import Iterator

import pytest

from infra.platforms.service_changes import service_changes
from infra.stack import parse_stack
from tests.gke.range_edits import RANGE_EDITS, start
from tests.gke.service_edits import ServiceEdit
from tests.gke.test_service_edits import told
from tests.rig.gke import GkeCheckout
from tests.rig.kube.control_plane import control_plane
from tests.rig.kube.kuberay import kuberay

pytestmark = pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning")


@pytest.mark.parametrize("edit", RANGE_EDITS, ids=lambda edit: edit.keys)
def test_the_plan_says_what_becomes_of_services(edit: ServiceEdit) -> None:
    config = start()
    edit.change(config)
    found = service_changes(parse_stack(start()), parse_stack(config))
    assert {one.service: (one.fate, one.answers, one.peak_chips) for one in found if one.fate != "same"} == edit.told


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GkeCheckout]:
    folder = tmp_path_factory.mktemp("range-edits")
    with control_plane(folder / "plane") as plane, kuberay(plane):
        checkout = GkeCheckout(folder, "dev", plane, start())
        up = checkout.operate("up")
        assert up.ok, up.failures
        yield checkout


@pytest.mark.rig
def test_a_second_up_changes_nothing(stack: GkeCheckout) -> None:
    """Also where the API server has filled in what the manifest leaves to the autoscaler."""
    outcome = stack.with_config(start()).operate("preview")
    assert outcome.ok, outcome.failures
    assert told(outcome) == []


@pytest.mark.rig
@pytest.mark.parametrize("edit", RANGE_EDITS, ids=lambda edit: edit.keys)
def test_the_engine_does_what_the_table_says(stack: GkeCheckout, edit: ServiceEdit) -> None:
    config = start()
    edit.change(config)
    outcome = stack.with_config(config).operate("preview")
    assert outcome.ok, outcome.failures
    assert told(outcome) == sorted(edit.expected)

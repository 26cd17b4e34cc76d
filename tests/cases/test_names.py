"""Names that grew too long behind the user's back."""

from typing import Any

import pytest

from infra.plan.node_pools import node_pools
from infra.platforms.gke.google import google_name
from infra.stack import parse_stack
from tests.cases.declared import NODE_POOL, declared
from tests.cases.stacks import config, mistakes, pool, service

LLAMA = "llama-3-1-8b-instruct-serving-production"


@pytest.mark.parametrize(("topology", "most"), [("4x4", 35), ("2x2", 47)])
def test_names_of_services_and_runs_are_limited_by_what_is_put_behind_them(topology: str, most: int) -> None:
    """kuberay#2923, kuberay#3083, kuberay#2169, kuberay#4100: `-xxxxx-headless` within 50, and 47 for KubeRay."""
    for length, right in ((most, True), (most + 1, False)):
        served = config(pool(topology=topology), services=(service("s" * length),))
        assert list(mistakes(served)) == ([] if right else ["services[0].name"])
        run: dict[str, object] = {"name": "j" * (length - 3), "run": "r1", "pool": "a", "data": {"global_batch": 2**14}}
        assert list(mistakes(config(pool(topology=topology), jobs=(run,)))) == ([] if right else ["jobs[0].name"])


def test_a_name_that_is_too_long_is_told_with_its_length_and_the_limit() -> None:
    """kuberay#2923."""
    assert len(LLAMA) == 40
    problem = mistakes(config(pool(topology="4x4"), services=(service(LLAMA),)))["services[0].name"]
    assert "40 characters" in problem.reason
    assert "35" in problem.reason
    nearest = problem.nearest
    assert isinstance(nearest, str)
    assert mistakes(config(pool(topology="4x4"), services=(service(nearest),))) == {}


@pytest.mark.parametrize(
    ("name", "right"), [("3b-model", "m-3b-model"), ("Llama", "llama"), ("a_b", "a-b"), ("a.b", "a-b"), ("a-", "a")]
)
def test_a_name_is_a_dns_label(name: str, right: str) -> None:
    """kuberay#4100: DNS-1035, a letter first."""
    found = mistakes(config(pool(), services=(service(name),)))
    assert {key: problem.nearest for key, problem in found.items()} == {"services[0].name": right}


def test_node_pools_of_many_slices_fit_gke() -> None:
    """kuberay#2923, for the names that GKE gets: 40 characters with the slice's number behind them."""
    longest = parse_stack(
        config(pool(name="p" * 36, slices=1000), network={"nodes": "10.0.0.0/19", "services": "10.64.0.0/20"})
    )
    names = [one.name for one in node_pools(longest.pools[0], "us-east5-b")]
    assert max(map(len, names)) == 40
    found = mistakes(
        config(pool(name="p" * 36, slices=1001), network={"nodes": "10.0.0.0/19", "services": "10.64.0.0/20"})
    )
    assert list(found) == ["pools[0].name"]


def test_two_stacks_of_one_project_share_no_name_at_google() -> None:
    """pulumi#1620: a name that is taken in the project or its region, not only in the cluster, is refused."""
    place: dict[str, Any] = {"region": "us-central1", "zone": "us-central1-c"}
    made = config(pool("v7x", "2x2x2"), **place)
    names = []
    for name in ("dev", "staging"):
        found = declared(made, name=name)
        outside = [one for one in found if one.type.startswith("gcp:") and one.type != NODE_POOL]
        named = [one.inputs.get("name") or one.inputs.get("accountId") for one in outside]
        # The bucket's name is the user's; the rest is `tpu-ray`'s.
        names.append({str(one) for one in named if one and one != "my-bucket"})
    assert names[0] & names[1] == set()
    assert len(names[0]) == 2


@pytest.mark.parametrize("longest", [30, 40])
def test_a_long_stack_name_is_shortened_the_same_way_every_time(longest: int) -> None:
    """kuberay#3083, for the names at Google: 40 characters for a cluster, 30 for an account, two stacks never alike."""
    names = [f"{'team-' * 10}{end}" for end in ("a", "b")]
    made = [google_name(name, longest) for name in names]
    assert made == [google_name(name, longest) for name in names]
    assert len(set(made)) == 2
    for name in made:
        assert len(name) <= longest
        assert name.startswith("tpu-ray-team-")
        assert name[-1].isalnum()

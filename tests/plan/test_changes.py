"""Which edits replace TPU hosts, as Google's provider plans them: a table of edits with the fate of the pool."""

import pytest

from infra.plan.changes import POOL_KEYS, changes, cluster_change
from infra.stack import GkePlatform, PoolSpec, StackSpec, parse_stack
from tests.plan.stacks import JOB, pool, service, stack

BEFORE = pool("train", "4x4", slices={"min": 0, "max": 1})
LENT = {**BEFORE, "capacity": "flex-start"}
RESERVED = {**BEFORE, "capacity": "reservation", "reservation": "mine"}


def fate(before: dict[str, object], after: dict[str, object]) -> tuple[str, list[str]]:
    (found,) = changes(stack([before], jobs=[JOB]), stack([after], jobs=[JOB]))
    return found.fate, [key.key for key in found.keys]


@pytest.mark.parametrize(
    ("before", "edit", "expected"),
    [
        (BEFORE, {}, ("same", [])),
        (BEFORE, {"topology": "8x8"}, ("replaced", ["topology"])),
        (BEFORE, {"generation": "v5e"}, ("replaced", ["generation", "machine_type"])),
        (BEFORE, {"capacity": "spot"}, ("replaced", ["capacity"])),
        (BEFORE, {"capacity": "reservation", "reservation": "mine"}, ("replaced", ["capacity", "reservation"])),
        (RESERVED, {"reservation": "other"}, ("replaced", ["reservation"])),
        (BEFORE, {"capacity": "flex-start"}, ("replaced", ["capacity", "max_run_s"])),
        (LENT, {"capacity": "queued"}, ("replaced", ["capacity"])),
        (LENT, {"max_run_s": 3600}, ("replaced", ["max_run_s"])),
        (BEFORE, {"zone": "us-east5-a"}, ("replaced", ["zone"])),
        (BEFORE, {"second_nic": True}, ("replaced", ["second_nic"])),
        (BEFORE, {"slices": {"min": 0, "max": 3}}, ("changed", ["slices.max"])),
        (BEFORE, {"slices": 1}, ("changed", ["slices.min"])),
        (BEFORE, {"node_image": "UBUNTU_CONTAINERD"}, ("changed", ["node_image"])),
        (BEFORE, {"boot_disk_gib": 200}, ("changed", ["boot_disk_gib"])),
        (BEFORE, {"usd_per_chip_hour": 1.5}, ("changed", ["usd_per_chip_hour"])),
    ],
)
def test_an_edit_of_a_pool(before: dict[str, object], edit: dict[str, object], expected: tuple[str, list[str]]) -> None:
    assert fate(before, {**before, **edit}) == expected


@pytest.mark.parametrize(
    ("before", "written_out"),
    [
        (BEFORE, {"machine_type": "ct6e-standard-4t"}),
        (BEFORE, {"zone": "us-east5-b"}),
        (BEFORE, {"capacity": "on-demand", "second_nic": False, "boot_disk_gib": 100, "node_image": "COS_CONTAINERD"}),
        (LENT, {"max_run_s": 604800}),
    ],
)
def test_a_default_that_is_written_out_is_no_change(before: dict[str, object], written_out: dict[str, object]) -> None:
    assert fate(before, {**before, **written_out}) == ("same", [])


def test_another_machine_for_the_same_topology_replaces_its_hosts() -> None:
    one, two = pool("eight", "2x4"), pool("eight", "2x4", machine_type="ct6e-standard-4t")
    served = [service("chat", "eight")]
    (found,) = changes(stack([one], served), stack([two], served))
    assert found.fate == "replaced"
    assert (found.keys[0].before, found.keys[0].after) == ("ct6e-standard-8t", "ct6e-standard-4t")


def test_another_context_of_a_kubeconfig_is_another_cluster() -> None:
    pools, served = [pool("chat")], [service("chat", "chat")]
    login = {"kubeconfig": "/home/me/.kube/config"}
    clusters = [{"cluster": {**login, "context": context}} for context in ("one", "two")]
    before, after = (stack(pools, served, platform=platform) for platform in clusters)
    assert [key.key for key in cluster_change(before, after).keys] == ["platform.cluster.context"]


def test_a_renamed_pool_is_one_that_comes_and_one_that_goes() -> None:
    before = stack([pool("old")], [service("chat", "old")])
    after = stack([pool("new")], [service("chat", "new")])
    assert [(c.pool, c.fate) for c in changes(before, after)] == [("new", "added"), ("old", "removed")]


def test_where_there_was_no_stack_every_pool_is_added() -> None:
    assert [c.fate for c in changes(None, stack([pool("chat")], [service("chat", "chat")]))] == ["added"]


@pytest.mark.parametrize(
    ("edit", "key"),
    [
        ({"project": "other-project"}, "platform.project"),
        ({"region": "us-east1", "zone": "us-east1-d"}, "platform.region"),
        ({"cluster": {"location": "zone"}}, "platform.cluster.location"),
        ({"cluster": {"existing": "theirs"}}, "platform.cluster.existing"),
        ({"cluster": {"kubeconfig": "/home/me/.kube/config"}}, "platform.cluster.kubeconfig"),
        ({"network": {"pods": "10.32.0.0/12"}}, "platform.network.pods"),
        ({"network": {"control_plane": "172.16.1.0/28"}}, "platform.network.control_plane"),
        # The default is 10.0.0.0/20: a part of it, and its neighbour.
        ({"network": {"nodes": "10.0.0.0/21"}}, "platform.network.nodes"),
        ({"network": {"nodes": "10.0.16.0/20"}}, "platform.network.nodes"),
    ],
)
def test_another_cluster_replaces_the_hosts_of_every_pool(edit: dict[str, object], key: str) -> None:
    pools, served = [pool("a"), pool("b")], [service("a", "a"), service("b", "b")]
    found = changes(stack(pools, served), stack(pools, served, platform=edit))
    assert [change.fate for change in found] == ["replaced", "replaced"]
    assert found[0].keys[0].key == key
    assert all(change.key == key or change.key == "zone" for change in found[0].keys)


def test_the_zone_of_a_zonal_cluster_replaces_pools_of_another_zone_too() -> None:
    pools, served = [pool("a", zone="us-east5-a")], [service("a", "a")]
    zonal = {"cluster": {"location": "zone"}}
    (found,) = changes(
        stack(pools, served, platform=zonal), stack(pools, served, platform={**zonal, "zone": "us-east5-c"})
    )
    assert (found.fate, found.keys[0].key) == ("replaced", "platform.zone")
    regional = changes(stack(pools, served), stack(pools, served, platform={"zone": "us-east5-c"}))
    assert regional[0].fate == "same"


@pytest.mark.parametrize(
    "edit",
    [
        {"image": "ghcr.io/me/other:2"},
        {"namespace": "other"},
        {"cluster": {"channel": "REGULAR"}},
        {"cluster": {"deletion_protection": False}},
        {"cluster": {"version": "1.36"}},
        {"network": {"nodes": "10.0.0.0/19"}},
        {"network": {"nodes": "10.0.0.0/20"}},
    ],
)
def test_other_edits_of_the_platform_leave_the_pools_alone(edit: dict[str, object]) -> None:
    pools, served = [pool("a")], [service("a", "a")]
    assert [change.fate for change in changes(stack(pools, served), stack(pools, served, platform=edit))] == ["same"]


MADE: dict[str, object] = {}
BY_NAME: dict[str, object] = {"cluster": {"existing": "theirs"}}
BY_FILE: dict[str, object] = {"cluster": {"kubeconfig": "/home/me/.kube/config"}}


@pytest.mark.parametrize(
    ("before", "after", "fate"),
    [
        (MADE, MADE, "same"),
        (MADE, {"project": "other-project"}, "replaced"),
        (MADE, BY_NAME, "removed"),
        (MADE, BY_FILE, "removed"),
        (BY_NAME, MADE, "added"),
        (BY_NAME, {"cluster": {"existing": "another"}}, "other"),
        (BY_NAME, {"cluster": {"existing": "theirs", "kubeconfig": "/home/me/.kube/config"}}, "same"),
        (BY_FILE, MADE, "added"),
        (BY_FILE, BY_NAME, "other"),
        (BY_FILE, {**BY_FILE, "project": "other-project"}, "same"),
    ],
)
def test_what_becomes_of_the_cluster(before: dict[str, object], after: dict[str, object], fate: str) -> None:
    pools, served = [pool("a")], [service("a", "a")]
    change = cluster_change(stack(pools, served, platform=before), stack(pools, served, platform=after))
    assert change.fate == fate
    assert bool(change.keys) == (fate != "same")


def test_the_first_cluster_is_added() -> None:
    first = stack([pool("a")], [service("a", "a")])
    assert cluster_change(None, first).fate == "added"
    assert cluster_change(None, stack([pool("a")], [service("a", "a")], platform=BY_NAME)).fate == "same"
    served = {"tpu-ray:pools": [pool("a")], "tpu-ray:services": [service("a", "a")]}
    local = parse_stack({"tpu-ray:platform": "local", **served})
    assert [cluster_change(local, first).fate, cluster_change(first, local).fate] == ["added", "removed"]


@pytest.mark.parametrize(
    ("before", "after", "fates"),
    [
        # Of a slice of several hosts each is a node pool; those that stay are not touched.
        ({"min": 0, "max": 1}, {"min": 0, "max": 3}, {"a-0": "same", "a-1": "created", "a-2": "created"}),
        ({"min": 2, "max": 2}, {"min": 1, "max": 1}, {"a-0": "same", "a-1": "deleted"}),
        # GKE resizes no slice by hand: one that is there already is kept, one that is not is made anew.
        ({"min": 1, "max": 2}, {"min": 2, "max": 2}, {"a-0": "same", "a-1": "replaced-if-empty"}),
        ({"min": 2, "max": 2}, {"min": 1, "max": 2}, {"a-0": "same", "a-1": "updated"}),
    ],
)
def test_node_pools_of_more_and_fewer_slices(
    before: dict[str, int], after: dict[str, int], fates: dict[str, str]
) -> None:
    served = [service("a", "a")]
    (change,) = changes(
        stack([pool("a", "4x4", slices=before)], served), stack([pool("a", "4x4", slices=after)], served)
    )
    assert {made.name: made.fate for made in change.node_pools} == fates
    assert change.fate == ("shrunk" if after["max"] < before["max"] else "changed")


def test_no_node_pool_is_named_where_the_stack_makes_none() -> None:
    served = [service("a", "a")]
    there = stack([pool("a")], served, platform=BY_FILE)
    assert [c.node_pools for c in changes(there, stack([pool("a", slices=2)], served, platform=BY_FILE))] == [()]
    (made,) = changes(there, stack([pool("a")], served))
    assert [(one.name, one.fate) for one in made.node_pools] == [("a-0", "created")]


def test_nothing_is_replaced_where_the_stack_makes_no_hosts() -> None:
    def local(topology: str) -> StackSpec:
        return parse_stack(
            {
                "tpu-ray:platform": "local",
                "tpu-ray:pools": [pool("a", topology)],
                "tpu-ray:services": [service("a", "a")],
            }
        )

    assert [c.fate for c in changes(local("2x2"), local("4x4"))] == ["changed"]
    there = {"cluster": {"kubeconfig": "/home/me/.kube/config"}}
    served = [service("a", "a")]
    found = changes(stack([pool("a")], served, platform=there), stack([pool("a", "4x4")], served, platform=there))
    assert [c.fate for c in found] == ["changed"]


def test_every_key_of_a_pool_has_a_row_in_the_table() -> None:
    rows = {entry.key.partition(".")[0] for entry in POOL_KEYS}
    assert set(PoolSpec.model_fields) - rows == {"name"}


def test_every_key_of_the_platform_is_known_to_replace_or_not() -> None:
    # A new key has to be thought about: put it into the table, or here.
    apart = {"kind", "image", "storage", "make_storage", "delete_storage", "registry", "namespace"}
    apart |= {"ray_version", "kueue_chart", "ray", "code"}
    assert set(GkePlatform.model_fields) == apart | {"project", "region", "zone", "cluster", "network"}

"""The edits of a stack file, and what each does to every resource. docs/changes.md shows the table; a test holds it."""

from tests.gke.edit import (
    Edit,
    add_pool,
    remove_pool,
    rename_pool,
    set_cluster,
    set_network,
    set_platform,
    set_pool,
)

IN_THE_CLUSTER = (
    *(f"replace NodePool {name}" for name in ("cpu", "chat-0", "wide-0", "train-0", "train-1", "night-0")),
    "replace Namespace workspace",
    "replace ServiceAccount workspace",
)
"""What goes and comes with a cluster that is made anew."""

EDITS: tuple[Edit, ...] = (
    Edit("nothing", lambda config: None, ()),
    Edit(
        "pools chat: slices 1 -> 2", set_pool("chat", slices=2), ("update NodePool chat-0: nodeCount",), together=True
    ),
    Edit(
        "pools chat: slices 1 -> {min: 1, max: 2}",
        set_pool("chat", slices={"min": 1, "max": 2}),
        ("update NodePool chat-0: autoscaling",),
    ),
    Edit(
        "pools wide: slices {min: 1, max: 3} -> {min: 2, max: 3}",
        set_pool("wide", slices={"min": 2, "max": 3}),
        ("update NodePool wide-0: autoscaling.minNodeCount",),
        together=True,
    ),
    Edit(
        "pools wide: slices {min: 1, max: 3} -> {min: 1, max: 4}",
        set_pool("wide", slices={"min": 1, "max": 4}),
        ("update NodePool wide-0: autoscaling.maxNodeCount",),
    ),
    Edit(
        "pools wide: slices {min: 1, max: 3} -> 2",
        set_pool("wide", slices=2),
        ("update NodePool wide-0: autoscaling, nodeCount",),
    ),
    Edit("pools train: slices 2 -> 3", set_pool("train", slices=3), ("create NodePool train-2",)),
    Edit("pools train: slices 2 -> 1", set_pool("train", slices=1), ("delete NodePool train-1",)),
    Edit(
        "pools train: slices 2 -> {min: 0, max: 2}",
        set_pool("train", slices={"min": 0, "max": 2}),
        ("update NodePool train-0: autoscaling", "update NodePool train-1: autoscaling"),
    ),
    Edit(
        "pools night: slices {min: 0, max: 1} -> {min: 0, max: 2}",
        set_pool("night", slices={"min": 0, "max": 2}),
        ("create NodePool night-1",),
    ),
    Edit(
        "pools night: slices {min: 0, max: 1} -> 1, while it has no node",
        set_pool("night", slices=1),
        ("replace NodePool night-0: autoscaling, nodeCount",),
    ),
    Edit(
        "pools chat: topology 2x2 -> 1x1",
        set_pool("chat", topology="1x1"),
        ("replace NodePool chat-0: nodeConfig.machineType",),
    ),
    Edit(
        "pools chat: topology 2x2 -> 4x4",
        set_pool("chat", topology="4x4"),
        ("replace NodePool chat-0: nodeCount, placementPolicy",),
    ),
    Edit(
        "pools train: topology 4x4 -> 4x8",
        set_pool("train", topology="4x8"),
        (
            "replace NodePool train-0: nodeCount, placementPolicy.tpuTopology",
            "replace NodePool train-1: nodeCount, placementPolicy.tpuTopology",
        ),
        together=True,
    ),
    Edit(
        "pools train: topology 4x4 -> 2x2",
        set_pool("train", topology="2x2"),
        ("replace NodePool train-0: nodeCount, placementPolicy", "delete NodePool train-1"),
    ),
    Edit(
        "pools wide: machine_type ct6e-standard-4t",
        set_pool("wide", machine_type="ct6e-standard-4t"),
        (
            "replace NodePool wide-0: autoscaling, nodeConfig.machineType, nodeCount, placementPolicy",
            "create NodePool wide-1",
            "create NodePool wide-2",
        ),
    ),
    Edit(
        "pools train: generation v6e -> v5e",
        set_pool("train", generation="v5e"),
        (
            "replace NodePool train-0: nodeConfig.diskType, nodeConfig.machineType",
            "replace NodePool train-1: nodeConfig.diskType, nodeConfig.machineType",
        ),
    ),
    Edit(
        "pools train: capacity on-demand -> spot",
        set_pool("train", capacity="spot"),
        ("replace NodePool train-0: nodeConfig.spot", "replace NodePool train-1: nodeConfig.spot"),
    ),
    Edit(
        "pools night: capacity spot -> on-demand",
        set_pool("night", capacity="on-demand"),
        ("replace NodePool night-0: nodeConfig.spot",),
    ),
    Edit(
        "pools train: capacity on-demand -> reservation",
        set_pool("train", capacity="reservation", reservation="held"),
        (
            "replace NodePool train-0: nodeConfig.reservationAffinity",
            "replace NodePool train-1: nodeConfig.reservationAffinity",
        ),
        together=True,
    ),
    Edit(
        "pools night: capacity spot -> flex-start",
        set_pool("night", capacity="flex-start"),
        (
            "replace NodePool night-0: management.autoRepair, nodeConfig.flexStart, nodeConfig.maxRunDuration, "
            "nodeConfig.spot",
        ),
        together=True,
    ),
    Edit(
        "pools train: zone us-east5-a",
        set_pool("train", zone="us-east5-a"),
        ("replace NodePool train-0: nodeLocations[0]", "replace NodePool train-1: nodeLocations[0]"),
    ),
    Edit(
        "pools chat: zone us-east5-a",
        set_pool("chat", zone="us-east5-a"),
        ("replace NodePool chat-0: nodeLocations[0]",),
    ),
    Edit(
        "pools train: node_image UBUNTU_CONTAINERD",
        set_pool("train", node_image="UBUNTU_CONTAINERD"),
        ("update NodePool train-0: nodeConfig.imageType", "update NodePool train-1: nodeConfig.imageType"),
    ),
    Edit(
        "pools train: boot_disk_gib 200",
        set_pool("train", boot_disk_gib=200),
        ("update NodePool train-0: nodeConfig.diskSizeGb", "update NodePool train-1: nodeConfig.diskSizeGb"),
    ),
    Edit(
        "pools train: second_nic true",
        set_pool("train", second_nic=True),
        (
            "create Network network-second",
            "create Subnetwork network-second",
            "replace NodePool train-0",
            "replace NodePool train-1",
        ),
    ),
    Edit("pools train: usd_per_chip_hour 1.5", set_pool("train", usd_per_chip_hour=1.5), ()),
    Edit(
        "pools chat: another name",
        rename_pool("chat", "talk"),
        ("create SlicePool talk", "create NodePool talk-0", "delete NodePool chat-0", "delete SlicePool chat"),
    ),
    Edit(
        "pools train: another name",
        rename_pool("train", "school"),
        (
            "create SlicePool school",
            "create NodePool school-0",
            "create NodePool school-1",
            "delete NodePool train-0",
            "delete NodePool train-1",
            "delete SlicePool train",
        ),
    ),
    Edit(
        "a pool more",
        add_pool(name="more", generation="v6e", topology="2x2"),
        ("create SlicePool more", "create NodePool more-0"),
        together=True,
    ),
    Edit("a pool less", remove_pool("night"), ("delete NodePool night-0", "delete SlicePool night")),
    Edit(
        "cluster: deletion_protection true",
        set_cluster(deletion_protection=True),
        ("update Cluster cluster: deletionProtection",),
    ),
    Edit("cluster: version 1.36", set_cluster(version="1.36"), ("update Cluster cluster: minMasterVersion",)),
    Edit(
        "cluster: channel REGULAR",
        set_cluster(channel="REGULAR"),
        ("update Cluster cluster: releaseChannel.channel",),
        together=True,
    ),
    Edit(
        "cluster: authorized_networks",
        set_cluster(authorized_networks=["203.0.113.0/24"]),
        ("update Cluster cluster: masterAuthorizedNetworksConfig.cidrBlocks[0]",),
        together=True,
    ),
    Edit(
        "cluster: cpu_nodes max 8",
        set_cluster(cpu_nodes={"max": 8}),
        ("update NodePool cpu: autoscaling.maxNodeCount",),
        together=True,
    ),
    Edit(
        "cluster: cpu_nodes machine_type n2-standard-8",
        set_cluster(cpu_nodes={"machine_type": "n2-standard-8"}),
        ("update NodePool cpu: nodeConfig.machineType",),
    ),
    Edit(
        "cluster: location zone", set_cluster(location="zone"), ("replace Cluster cluster: location", *IN_THE_CLUSTER)
    ),
    Edit(
        "network: nodes wider",
        set_network(nodes="10.0.0.0/19"),
        ("update Subnetwork network: ipCidrRange",),
        together=True,
    ),
    Edit(
        "network: nodes elsewhere",
        set_network(nodes="10.64.0.0/20"),
        ("replace Subnetwork network: ipCidrRange", "replace Cluster cluster", *IN_THE_CLUSTER),
    ),
    Edit(
        "network: pods",
        set_network(pods="10.128.0.0/12"),
        ("replace Subnetwork network: secondaryIpRanges[0].ipCidrRange", "replace Cluster cluster", *IN_THE_CLUSTER),
    ),
    Edit(
        "network: services",
        set_network(services="10.96.0.0/20"),
        ("replace Subnetwork network: secondaryIpRanges[1].ipCidrRange", "replace Cluster cluster", *IN_THE_CLUSTER),
    ),
    Edit(
        "network: control_plane",
        set_network(control_plane="172.16.1.0/28"),
        ("replace Cluster cluster: privateClusterConfig.masterIpv4CidrBlock", *IN_THE_CLUSTER),
    ),
    Edit(
        "platform: zone us-east5-a",
        set_platform(zone="us-east5-a"),
        (
            "update Cluster cluster: nodeLocations[0]",
            "replace NodePool cpu: nodeLocations[0]",
            "replace NodePool chat-0: nodeLocations[0]",
            "replace NodePool wide-0: nodeLocations[0]",
            "replace NodePool train-0: nodeLocations[0]",
            "replace NodePool train-1: nodeLocations[0]",
            "replace NodePool night-0: nodeLocations[0]",
        ),
    ),
    Edit(
        "platform: another storage",
        set_platform(storage="gs://other-tpu-ray"),
        (
            "replace Bucket storage: name",
            "replace BucketIAMMember storage-0-objectUser",
            "replace BucketIAMMember storage-0-legacyBucketReader",
        ),
    ),
    Edit("platform: make_storage false", set_platform(make_storage=False), ("delete Bucket storage",)),
    Edit(
        "platform: delete_storage true",
        set_platform(delete_storage=True),
        ("update Bucket storage: forceDestroy",),
        together=True,
    ),
    Edit(
        "platform: registry",
        set_platform(registry="tpu-ray"),
        ("create Registry registry", "create Repository registry"),
        together=True,
    ),
    Edit(
        "platform: namespace ml",
        set_platform(namespace="ml"),
        (
            "replace Namespace workspace: metadata.name",
            "replace ServiceAccount workspace: metadata.namespace",
            "replace BucketIAMMember storage-0-objectUser: member",
            "replace BucketIAMMember storage-0-legacyBucketReader: member",
        ),
    ),
)

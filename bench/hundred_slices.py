"""A preview of 100 slices: our components against a flat program with the same resources, in turns, in one run.

Usage: python -m bench.hundred_slices [ROUNDS]. Prints seconds and peak memory of each round, the medians, their ratio,
and ends with 1 where ours takes more than 1.5 times as long or 1 GiB. The provider is the stand-in of the tests.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import pulumi_gcp as gcp
from pulumi import automation as auto

from infra.components import SlicePool
from infra.pulumi_cli import obtain_cli
from scripts.measured import tree_gib

ROOT = Path(__file__).resolve().parents[1]
SLICES = 100
MOST_TIMES, MOST_GIB = 1.5, 1.0
PLACE = {"project": "bench", "zone": "us-east5-b"}
CLUSTER = "projects/bench/locations/us-east5/clusters/bench"
ACCOUNT = "nodes@bench.iam.gserviceaccount.com"


def ours() -> None:
    """One pool of 100 slices of four hosts."""
    shape = {"generation": "v6e", "topology": "4x4", "slices_min": SLICES, "slices_max": SLICES, "capacity": "spot"}
    SlicePool("train", {**shape, **PLACE, "cluster": CLUSTER, "node_account": ACCOUNT})  # type: ignore[typeddict-item]


def flat() -> None:
    """The same 100 node pools, written by hand."""
    for number in range(SLICES):
        gcp.container.NodePool(
            f"train-{number}",
            name=f"train-{number}",
            project="bench",
            cluster=CLUSTER,
            node_locations=["us-east5-b"],
            node_count=4,
            max_pods_per_node=15,
            placement_policy={"type": "COMPACT", "tpu_topology": "4x4"},
            management={"auto_repair": True, "auto_upgrade": True},
            upgrade_settings={"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1},
            network_config={"enable_private_nodes": True},
            node_config={
                "machine_type": "ct6e-standard-4t",
                "image_type": "COS_CONTAINERD",
                "disk_type": "hyperdisk-balanced",
                "disk_size_gb": 100,
                "service_account": ACCOUNT,
                "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
                "labels": {"tpu-ray/pool": "train"},
                "spot": True,
                "reservation_affinity": {"consume_reservation_type": "NO_RESERVATION"},
                "gvnic": {"enabled": True},
                "gcfs_config": {"enabled": True},
                "workload_metadata_config": {"mode": "GKE_METADATA"},
                "linux_node_config": {"sysctls": {"vm.max_map_count": "8388608"}},
            },
        )


def preview(program: str, folder: Path) -> None:
    """Run one preview and print what it took as JSON: seconds, peak GiB of this process and all it started, creates."""
    cli = obtain_cli(print)
    (folder / "state").mkdir(exist_ok=True)
    stack = auto.create_or_select_stack(
        stack_name=program,
        project_name="bench",
        program={"ours": ours, "flat": flat}[program],
        opts=auto.LocalWorkspaceOptions(
            work_dir=str(folder),
            project_settings=auto.ProjectSettings(
                name="bench", runtime="python", backend=auto.ProjectBackend(url=(folder / "state").as_uri())
            ),
            pulumi_command=auto.PulumiCommand(root=str(cli.bin_dir.parent)),
            env_vars={
                "PATH": os.pathsep.join([str(folder / "plugins"), str(cli.bin_dir), os.environ["PATH"]]),
                "PULUMI_HOME": str(folder / "home"),
                "PULUMI_CONFIG_PASSPHRASE": "bench",
                "PULUMI_SKIP_UPDATE_CHECK": "true",
                "TPU_RAY_RIG_CLOUD": str(folder / "cloud"),
            },
        ),
    )
    peak, done = 0.0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not done.wait(0.1):
            peak = max(peak, tree_gib(os.getpid()))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    started = time.monotonic()
    result = stack.preview()
    seconds = time.monotonic() - started
    done.set()
    sampler.join()
    created = sum(n for op, n in result.change_summary.items() if op == auto.OpType.CREATE)
    print(json.dumps({"seconds": round(seconds, 2), "gib": round(peak, 2), "creates": created}))


def main(rounds: int) -> int:
    """Previews in turns, each in a process of its own."""
    took: dict[str, list[dict[str, float]]] = {"ours": [], "flat": []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "plugins").mkdir()
        plugin = folder / "plugins" / "pulumi-resource-gcp"
        command = f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m tests.rig.gcp"
        plugin.write_text(f'#!/bin/sh\n{command} "$@"\n')
        plugin.chmod(0o755)
        for number in range(rounds):
            for program in ("ours", "flat"):
                run = [sys.executable, "-m", "bench.hundred_slices", program, str(folder)]
                said = subprocess.run(run, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
                took[program].append(json.loads(said.splitlines()[-1]))
                print(f"round {number + 1} {program:<5} {took[program][-1]}", flush=True)
    times = {name: median(one["seconds"] for one in runs) for name, runs in took.items()}
    ratio, peak = times["ours"] / times["flat"], max(one["gib"] for one in took["ours"])
    print(f"median {times['ours']:.2f} s against {times['flat']:.2f} s: {ratio:.2f} times; peak {peak:.2f} GiB")
    return 0 if ratio <= MOST_TIMES and peak <= MOST_GIB else 1


if __name__ == "__main__":
    if len(sys.argv) == 3:
        preview(sys.argv[1], Path(sys.argv[2]))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) == 2 else 5))

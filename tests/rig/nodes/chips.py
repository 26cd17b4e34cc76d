"""The chips of an emulated host, which are not there: JAX computes on the processor and counts as many devices.

A pod is told by its manifest to use TPUs, as in the cloud. Only where the device plugin gave it chips does the folder
that is mounted with them tell every Python process otherwise.
"""

from pathlib import Path

from tests.rig.nodes.device_plugin import Mount
from workloads.spec import Slice

CHIPS = "/opt/emulated-chips"
"""On the path of every Python process; empty where there are no chips."""


def write_chips(folder: Path, shape: Slice) -> Mount:
    """The folder that a container gets with its chips."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"""import os

if "tpu" in os.environ.get("JAX_PLATFORMS", ""):
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count={shape.devices_per_host}"
"""
    )
    return Mount(folder, CHIPS)

"""`tpu-ray slices`: every legal slice as JSON, the same as tables for people."""

import json

from typer.testing import CliRunner

from infra.cli.commands import app
from workloads.spec import catalogue
from workloads.spec.generations import GENERATIONS

KEYS = [
    "generation",
    "topology",
    "machine_type",
    "chips",
    "hosts",
    "chips_per_host",
    "hbm_gib_per_chip",
    "multi_host",
    "gke_accelerator",
    "ray_accelerator_type",
    "ray_pod_type",
    "compiler_topology",
]


def test_json_holds_every_slice() -> None:
    done = CliRunner().invoke(app, ["slices", "--json"])
    assert done.exit_code == 0
    rows = json.loads(done.stdout)
    assert len(rows) == len(catalogue())
    assert all(list(row) == KEYS for row in rows)
    assert {
        "generation": "v6e",
        "topology": "4x4",
        "machine_type": "ct6e-standard-4t",
        "chips": 16,
        "hosts": 4,
        "chips_per_host": 4,
        "hbm_gib_per_chip": 32,
        "multi_host": True,
        "gke_accelerator": "tpu-v6e-slice",
        "ray_accelerator_type": "TPU-V6E",
        "ray_pod_type": "v6e-16",
        "compiler_topology": "v6e:4x4",
    } in rows


def test_tables_for_people() -> None:
    done = CliRunner().invoke(app, ["slices"])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    for table in GENERATIONS.values():
        assert any(line.startswith(f"{table.name} ") for line in lines)
        for topology in table.shown():
            assert any(f"│ {topology} " in line for line in lines), topology
    assert "…" not in done.stdout

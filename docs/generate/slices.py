"""Write docs/slices.md: the table of slices, from the catalogue.

Run: `python docs/generate/slices.py [--check]`.
"""

import sys
from pathlib import Path

from docs.generate.page import write_or_check
from infra.cli.slices import SHOWN, rule_of, shown_slices
from workloads.spec import Slice
from workloads.spec.generations import GENERATIONS, Generation

PAGE = Path(__file__).resolve().parents[2] / "docs" / "slices.md"

HEAD = """\
<!-- Written by docs/generate/slices.py from workloads/spec/generations.py. -->

# The slices

A slice is named by its generation and its topology, the sides of the block of chips that it is; everything else
follows. `tpu-ray slices` prints these tables, `tpu-ray slices --json` every legal slice one by one.

- **hosts**: machines of the slice, each one Kubernetes node and one Ray node. A slice of several hosts is made, lost
  and replaced as a whole.
- **Ray's name**: the number in it counts chips on v5e and v6e, but two per chip on v4, v5p and v7x. It is never an
  input.
- Where two machine types make one topology (`2x4`), the one with fewer hosts is taken unless `machine_type` names the
  other.
- **not Ray**: GKE makes the slice, but Ray's own table lacks it and Ray refuses to reserve one. A stack file with such
  a pool is refused.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_table(table) for table in GENERATIONS.values())])


def _table(table: Generation) -> str:
    lines = [
        f"## {table.name}",
        "",
        f"GKE's accelerator label `{table.gke_accelerator}`, Ray's accelerator type `{table.ray_accelerator_type}`.",
        "",
        "| " + " | ".join([*SHOWN.values(), ""]) + " |",
        "|" + "---|" * (len(SHOWN) + 1),
        *(_row(found) for found in shown_slices(table)),
        "",
    ]
    if rule_of(table):
        rule = rule_of(table).partition(": ")[2]
        lines += [f"{rule[0].upper()}{rule[1:]}.{_ray_rule(table)}", ""]
    return "\n".join(lines)


def _row(found: Slice) -> str:
    cells = [str(getattr(found, column)) for column in SHOWN]
    return "| " + " | ".join([*cells, "" if found.ray_accepts else "not Ray"]) + " |"


def _ray_rule(table: Generation) -> str:
    if table.ray_box is None:
        return " Ray reserves only those of this table that are not marked."
    a, b, c = table.ray_box
    return f" Ray reserves those with A up to {a}, B up to {b} and C up to {c}."


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))

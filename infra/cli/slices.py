"""`tpu-ray slices`: every slice that a stack file may name."""

import json as json_text
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from workloads.spec import Slice, catalogue
from workloads.spec.generations import GENERATIONS, Generation

COLUMNS = (
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
)
SHOWN = {
    "topology": "topology",
    "machine_type": "machine type",
    "chips": "chips",
    "hosts": "hosts",
    "chips_per_host": "chips/host",
    "hbm_gib_per_chip": "GiB/chip",
    "ray_pod_type": "Ray's name",
    "compiler_topology": "compiler's name",
}
"""The columns of the table for people, and their headings. GKE's names are in the JSON."""


def rows() -> list[dict[str, Any]]:
    """Every legal slice as one JSON object."""
    return [{column: getattr(found, column) for column in COLUMNS} for found in catalogue()]


def shown_slices(table: Generation) -> list[Slice]:
    """The slices of a generation that people get to see: all small ones, and the documented ones among the large."""
    return [found for found in catalogue() if found.generation == table.name and found.topology in table.shown()]


def rule_of(table: Generation) -> str:
    """What other topologies of the generation are legal, or an empty text where the list is complete."""
    if table.flat:
        return ""
    return (
        f"{table.name}: above 64 chips also every AxBxC with A <= B <= C, all multiples of 4 and at most 256, "
        f"at most {table.max_chips} chips"
    )


def slices_command(
    json: Annotated[bool, typer.Option("--json", help="Every legal slice as a JSON list.")] = False,
) -> None:
    """Show every TPU slice that a stack file may name."""
    if json:
        typer.echo(json_text.dumps(rows(), indent=2))
        return
    # The table keeps its width where no terminal gives one, so that nothing is cut off in a pipe.
    console = Console() if Console().is_terminal else Console(width=120)
    for table in GENERATIONS.values():
        shown = Table(
            title=f"{table.name}  ({table.gke_accelerator}, {table.ray_accelerator_type})", title_justify="left"
        )
        for column, heading in SHOWN.items():
            number = column in ("chips", "hosts", "chips_per_host", "hbm_gib_per_chip")
            shown.add_column(heading, justify="right" if number else "left")
        for found in shown_slices(table):
            shown.add_row(*(str(getattr(found, column)) for column in SHOWN))
        console.print(shown)
        if rule_of(table):
            console.print(rule_of(table), highlight=False)

"""`tpu-ray render`: a GKE stack's RayService and RayJob manifests, as files."""

import json
from pathlib import Path
from typing import Annotated

import typer

from infra.cli.names import stack_name


def render_command(
    stack: Annotated[
        str, typer.Option("--stack", "-s", callback=stack_name, help="The stack: `dev` is stacks/Pulumi.dev.yaml.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files; made when missing.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the written files as a JSON list.")] = False,
) -> None:
    """Write a RayService for each service and a RayJob for each job of a GKE stack; touches no cluster."""
    import yaml

    from infra.cli.stacks import checked_stack, project_with, refused
    from infra.platforms.gke.manifests import manifests
    from infra.stack import Problem

    spec = checked_stack(project_with(stack, as_json), stack, as_json)
    if spec.platform.kind != "gke":
        problem = Problem(
            key="tpu-ray:platform.kind",
            value=spec.platform.kind,
            reason="only a gke stack has manifests",
            allowed=("gke",),
        )
        raise refused(str(problem), [problem], as_json)
    written: list[str] = []
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, manifest in manifests(spec.platform, spec).items():
            path = output / name
            path.write_text(yaml.safe_dump(manifest, sort_keys=False, width=1000))
            written.append(str(path))
    except OSError as error:
        typer.echo(f"--output {output}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(written, indent=2) if as_json else "\n".join(written))

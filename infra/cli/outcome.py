"""How an operation's end is told on a terminal."""

from collections.abc import Mapping

import typer

from infra.automation.operate import Outcome
from infra.plan.identity import CLUSTER
from infra.plan.service_fates import ANSWERS, MEANS

_DONE = {"up": "is up", "preview": "previewed", "refresh": "refreshed", "destroy": "destroyed"}


def print_outcome(outcome: Outcome) -> None:
    """Failures to stderr; else what changed and, after `up`, what runs and how to ask it something."""
    if not outcome.ok:
        typer.echo(f"\n{outcome.operation} of stack {outcome.stack} failed after {outcome.duration_s:.0f} s:", err=True)
        for failure in outcome.failures:
            lines = failure.reason.splitlines() or ["no reason given"]
            typer.echo(f"  {failure.resource + ': ' if failure.resource else ''}{lines[0]}", err=True)
            for line in lines[1:]:
                typer.echo(f"    {line}", err=True)
        return
    if outcome.operation == "preview":
        for step in outcome.steps:
            keys = f"  ({step['keys']})" if step["keys"] else ""
            typer.echo(f"  {step['op']:<20} {step['resource']}{keys}")
            if said := means(step["op"], step["urn"], step["keys"]):
                typer.echo(f"  {'':<20} = {said}")
    counted = ", ".join(f"{n} {op}" for op, n in sorted(outcome.changes.items())) or "nothing to do"
    typer.echo(f"stack {outcome.stack} {_DONE[outcome.operation]} in {outcome.duration_s:.0f} s: {counted}")
    if outcome.operation == "up":
        for line in what_runs(outcome.outputs):
            typer.echo(line)


def means(operation: str, urn: str, keys: str) -> str:
    """What a step does to a service that runs, in the plan's words; empty for a step of anything else."""
    # urn:pulumi:<stack>::<project>::<types of the parents>$<type>::<name>
    if urn.split("::")[2].rpartition("$")[2] != "kubernetes:ray.io/v1:RayService":
        return ""
    if operation == "replace":
        return f"{MEANS['replaced']}; {ANSWERS['none']}"
    if operation == "update" and CLUSTER in keys:
        return f"{MEANS['beside']}; {ANSWERS['all']}"
    if operation == "update" and "serveConfigV2" in keys:
        return "Serve changes it in place, on the slices that it has and those it gets"
    return ""


def what_runs(outputs: Mapping[str, object]) -> list[str]:
    """Endpoints, jobs, the Ray dashboard and the curl line, from the stack's outputs; missing ones are left out."""
    lines: list[str] = []
    endpoints, jobs = outputs.get("endpoints"), outputs.get("jobs")
    if isinstance(endpoints, Mapping) and endpoints:
        lines += ["", "services"]
        lines += [f"  {name:<16} {url}" for name, url in endpoints.items()]
    if isinstance(jobs, Mapping) and jobs:
        lines += ["", "jobs"]
        for name, about in jobs.items():
            text = ", ".join(f"{key} {value}" for key, value in about.items()) if isinstance(about, Mapping) else about
            lines.append(f"  {name:<16} {text}")
    if dashboard := outputs.get("dashboard"):
        lines += ["", f"Ray dashboard      {dashboard}"]
    if curl := outputs.get("curl"):
        lines += ["", "Ask it something:", "", f"{curl}"]
    return lines

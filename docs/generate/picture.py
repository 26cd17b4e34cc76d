"""Draw docs/parts.svg: one stack file, and what comes up from it on this machine.

The pools, hosts, services and jobs are read from stacks/Pulumi.local.yaml, so the picture cannot say what the file does
not. Run: `python docs/generate/picture.py [--check]`.
"""

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from docs.generate.page import write_or_check
from infra.stack import PoolSpec, StackSpec, parse_stack, read_stack_file

ROOT = Path(__file__).resolve().parents[2]
STACK_FILE = ROOT / "stacks" / "Pulumi.local.yaml"
PICTURE = ROOT / "docs" / "parts.svg"

WIDTH = 960
INK, PAPER, LINE = "#1f2937", "#ffffff", "#9ca3af"
FILE, ENGINE, SLICE, HOST, SERVICE, JOB = "#fef3c7", "#ede9fe", "#e0f2fe", "#bae6fd", "#dcfce7", "#fee2e2"


@dataclass(frozen=True)
class Box:
    """A rounded box at (x, y), in pixels, with a bold title and plain lines below it."""

    x: int
    y: int
    width: int
    height: int
    fill: str
    title: str
    lines: tuple[str, ...] = ()

    def svg(self) -> str:
        parts = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="8" '
            f'fill="{self.fill}" stroke="{LINE}"/>',
            f'<text x="{self.x + 12}" y="{self.y + 22}" font-weight="600">{escape(self.title)}</text>',
        ]
        parts += [
            f'<text x="{self.x + 12}" y="{self.y + 42 + 17 * i}" font-size="12">{escape(line)}</text>'
            for i, line in enumerate(self.lines)
        ]
        return "\n".join(parts)


def arrow(x: int, start_y: int, end_y: int, label: str = "") -> str:
    """A downward arrow with its label to the right."""
    return (
        f'<line x1="{x}" y1="{start_y}" x2="{x}" y2="{end_y - 6}" stroke="{INK}" marker-end="url(#head)"/>'
        f'<text x="{x + 10}" y="{(start_y + end_y) // 2 + 4}" font-size="12" fill="#4b5563">{escape(label)}</text>'
    )


def counted(number: int, noun: str) -> str:
    """`1 chip`, `16 chips`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def pool_boxes(pool: PoolSpec, stack: StackSpec, x: int, y: int, width: int) -> str:
    """One pool: its slice, a square a host, and the services and jobs that take it."""
    shape = pool.slice
    parts = [
        Box(
            x,
            y,
            width,
            150,
            SLICE,
            f"pool {pool.name}: {shape.generation} {shape.topology}",
            (f"{shape.machine_type}: {counted(shape.chips, 'chip')} on {counted(shape.hosts, 'host')}",),
        ).svg()
    ]
    shown = min(shape.hosts, 8)
    side = min(96, (width - 24 - 8 * (shown - 1)) // shown)
    for host in range(shown):
        left = x + 12 + host * (side + 8)
        parts.append(f'<rect x="{left}" y="{y + 56}" width="{side}" height="82" rx="6" fill="{HOST}" stroke="{LINE}"/>')
        parts.append(f'<text x="{left + 8}" y="{y + 74}" font-size="11">host {host}</text>')
        for chip in range(shape.chips_per_host):
            column, row = chip % 2, chip // 2
            parts.append(
                f'<rect x="{left + 8 + 24 * column}" y="{y + 82 + 24 * row}" width="20" height="20" rx="3" '
                f'fill="{PAPER}" stroke="{LINE}"/>'
            )
    takers = [
        (JOB, f"job {job.name}", f"{job.steps} steps, a checkpoint every {job.checkpoint_every}")
        for job in stack.jobs
        if job.pool == pool.name
    ]
    takers += [
        (SERVICE, f"service {service.name}", f"/{service.name}/v1  model {service.model}")
        for service in stack.services
        if service.pool == pool.name
    ]
    for i, (fill, title, line) in enumerate(takers):
        parts.append(Box(x, y + 196 + 66 * i, width, 56, fill, title, (line,)).svg())
    parts.append(arrow(x + width // 2, y + 196, y + 150, "takes the whole slice"))
    return "\n".join(parts)


def draw(stack: StackSpec) -> str:
    """The whole picture as SVG text."""
    widths = [300 if not pool.slice.multi_host else 560 for pool in stack.pools]
    top = 250
    body = [
        Box(
            30, 20, 900, 60, FILE, "stacks/Pulumi.local.yaml", ("pools, services, jobs: the one thing you write",)
        ).svg(),
        arrow(180, 80, 116, "checked: every mistake at once, before anything starts"),
        Box(
            30,
            116,
            900,
            60,
            ENGINE,
            "tpu-ray up / pulumi up",
            ("the Pulumi engine: create, refresh, update, destroy; `up` ends when every service answers",),
        ).svg(),
        arrow(180, 176, 210, "local: Ray processes that look like TPU hosts. gke: node pools, RayService, RayJob"),
    ]
    x = 30
    deepest = 0
    for pool, width in zip(stack.pools, widths, strict=True):
        body.append(pool_boxes(pool, stack, x, top - 34, width))
        users = [entry.pool for entry in stack.services] + [entry.pool for entry in stack.jobs]
        takers = users.count(pool.name)
        deepest = max(deepest, top + 162 + 66 * takers)
        x += width + 40
    height = deepest + 16
    width = max(WIDTH, x)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="14" fill="{INK}">\n'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(write_or_check(PICTURE, draw(parse_stack(read_stack_file(STACK_FILE)))))

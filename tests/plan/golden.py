"""Write the outputs that `test_golden.py` compares with: `python -m tests.plan.golden`, then look at what changed."""

from datetime import date
from pathlib import Path

from infra.cli.plan import shown
from infra.plan.report import plan
from infra.stack import load_stack

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "golden"
STACKS = ("dev", "staging", "prod")
TODAY = date(2026, 12, 2)


def output(stack: str) -> str:
    """What `tpu-ray plan -s STACK` prints into a pipe on that day."""
    return shown(plan(stack, load_stack(ROOT / "stacks" / f"Pulumi.{stack}.yaml"), TODAY))


if __name__ == "__main__":
    for name in STACKS:
        (FOLDER / f"{name}.txt").write_text(output(name))

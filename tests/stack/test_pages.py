"""The generated pages are the ones that their scripts write now."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["stack_file", "slices", "node_pools", "plan", "picture"])
def test_page_is_current(script: str) -> None:
    path = ROOT / "docs" / "generate" / f"{script}.py"
    done = subprocess.run([sys.executable, str(path), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run `python docs/generate/{script}.py` and commit the page\n{done.stderr}"


def test_the_page_shows_every_key_of_the_local_stack_file() -> None:
    page = (ROOT / "docs" / "stack-file.md").read_text()
    assert (ROOT / "stacks" / "Pulumi.local.yaml").read_text().rstrip() in page
    for key in (
        "topology",
        "machine_type",
        "global_batch",
        "prefill_buckets",
        "tpu-ray:hubToken",
        "namespace",
        "max_run_s",
        "second_nics",
    ):
        assert f"`{key}`" in page
    assert "| None |" not in page

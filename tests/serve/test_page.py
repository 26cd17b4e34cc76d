"""The page on services is the one that its script writes now, and it tells of every field."""

import subprocess
import sys
from pathlib import Path

from workloads.serve.protocol import LABELS, REFUSED, ChatRequest, CompletionRequest

ROOT = Path(__file__).parents[2]


def test_page_is_current() -> None:
    script = ROOT / "docs" / "generate" / "services.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run `python docs/generate/services.py` and commit the page\n{done.stderr}"


def test_page_names_every_field() -> None:
    page = (ROOT / "docs" / "services.md").read_text()
    fields = [*ChatRequest.model_fields, *CompletionRequest.model_fields, *REFUSED, *LABELS]
    assert [name for name in fields if f"`{name}`" not in page] == []
    assert "None |" not in page

"""docs/package.md shows the programs that the tests run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_page_is_current() -> None:
    script = ROOT / "docs" / "generate" / "package.py"
    done = subprocess.run([sys.executable, "-W", "ignore", str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run `python docs/generate/package.py` and commit the page\n{done.stderr}"

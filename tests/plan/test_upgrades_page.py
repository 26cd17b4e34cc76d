"""docs/upgrades.md is the page that its script writes now, and it is found."""

import subprocess
import sys
from pathlib import Path

from tests.gke.range_edits import RANGE_EDITS
from tests.gke.room_edits import EDITS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "upgrades.md"


def test_page_is_current() -> None:
    script = ROOT / "docs" / "generate" / "upgrades.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run `python docs/generate/upgrades.py` and commit the page\n{done.stderr}"


def test_who_is_cut_off_is_bold() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == len(EDITS) + len(RANGE_EDITS)
    for edit, row in zip((*EDITS, *RANGE_EDITS), rows, strict=True):
        cut_off = any(answers == "none" and fate != "added" for fate, answers, _ in edit.told.values())
        assert ("**" in row) is cut_off, row


def test_the_pages_that_a_user_reads_first_lead_to_it() -> None:
    assert "(docs/upgrades.md)" in (ROOT / "README.md").read_text()
    assert "(upgrades.md)" in (ROOT / "docs" / "gke.md").read_text()

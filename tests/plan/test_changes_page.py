"""docs/changes.md is the page that its script writes now, and it tells of every edit."""

import subprocess
import sys
from pathlib import Path

from tests.gke.edits import EDITS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "changes.md"


def rows() -> dict[str, str]:
    """The tables' rows: the edit, and what is told of it."""
    lines = PAGE.read_text().partition("## More and fewer slices")[2].splitlines()
    cells = [line.removeprefix("| `").removesuffix(" |").partition("` | ") for line in lines if line.startswith("| `")]
    return {edit: told for edit, _, told in cells}


def test_page_is_current() -> None:
    script = ROOT / "docs" / "generate" / "changes.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run `python docs/generate/changes.py` and commit the page\n{done.stderr}"


def test_every_edit_has_one_row() -> None:
    edits = [edit for edit in EDITS if edit.keys != "nothing"]
    assert len(rows()) == len(edits) == len({edit.keys for edit in edits})
    for edit in edits:
        told = rows()[edit.keys.removeprefix("pools ").replace("->", "→")]
        assert (told == "nothing") == (edit.expected == ())


def test_what_is_replaced_is_bold_and_nothing_else_is() -> None:
    assert rows()["train: topology 4x4 → 2x2"] == (
        "**replaced: `NodePool train-0`** (nodeCount, placementPolicy); deleted: `NodePool train-1`"
    )
    assert rows()["cluster: location zone"] == "**replaced: `Cluster cluster` with all in it** (location)"
    assert rows()["train: usd_per_chip_hour 1.5"] == "nothing"
    for told in rows().values():
        parts = told.split("**")
        assert all(part.startswith("replaced: ") for part in parts[1::2])
        assert "replaced" not in "".join(parts[::2])


def test_the_pages_that_a_user_reads_first_lead_to_it() -> None:
    assert "(docs/changes.md)" in (ROOT / "README.md").read_text()
    assert "(changes.md)" in (ROOT / "docs" / "gke.md").read_text()

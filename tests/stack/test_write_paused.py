"""`paused` is written into a stack file, and taken out, by one edit that keeps everything else."""

from pathlib import Path

import pytest

from infra.stack import StackError
from infra.stack.paused import with_paused, write_paused

ROOT = Path(__file__).parents[2]

BLOCK = """\
config:
  tpu-ray:services:
    # what answers
    - name: chat   # the name
      pool: single
    - pool: single
      name: other
"""
FLOW = 'config:\n  tpu-ray:services: [{name: chat, pool: p}, {pool: p, name: "other"}]  # two\n'


@pytest.mark.parametrize(
    ("text", "service", "edited"),
    [
        pytest.param(BLOCK, "chat", BLOCK.replace("# the name\n", "# the name\n      paused: true\n"), id="block"),
        pytest.param(BLOCK, "other", BLOCK + "      paused: true\n", id="name-last"),
        pytest.param(FLOW, "chat", FLOW.replace("name: chat", "name: chat, paused: true"), id="flow"),
        pytest.param(FLOW, "other", FLOW.replace('"other"', '"other", paused: true'), id="flow-quoted"),
    ],
)
def test_it_is_added_behind_the_name_and_taken_out_again(text: str, service: str, edited: str) -> None:
    assert with_paused(text, service, True) == edited
    assert with_paused(edited, service, True) == edited
    assert with_paused(edited, service, False) == text


def test_a_last_line_without_an_end_is_taken_as_it_is() -> None:
    assert with_paused(BLOCK.rstrip("\n"), "other", True) == BLOCK + "      paused: true"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    - paused: true\n      name: chat\n", "    - paused: false\n      name: chat\n"),
        ("    - name: chat\n      paused: true # for now\n", "    - name: chat\n"),
        ("    - {name: chat, paused: true, pool: p}\n", "    - {name: chat, pool: p}\n"),
        ("    - {paused: true, name: chat}\n", "    - {paused: false, name: chat}\n"),
    ],
)
def test_what_a_person_wrote_is_taken_out(before: str, after: str) -> None:
    head = "config:\n  tpu-ray:services:\n"
    assert with_paused(head + before, "chat", False) == head + after
    assert with_paused(head + after, "chat", False) == head + after


@pytest.mark.parametrize("stack", ["local", "dev", "staging", "prod"])
def test_the_projects_own_files_come_back_as_they_were(stack: str) -> None:
    text = (ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text()
    edited = with_paused(text, "chat", True)
    assert len(edited.splitlines()) == len(text.splitlines()) + 1
    assert with_paused(edited, "chat", False) == text


def test_an_anchor_that_two_services_share_is_left_to_a_person() -> None:
    text = "x: &a {name: chat, pool: p}\nconfig:\n  tpu-ray:services: [*a, *a]\n"
    with pytest.raises(StackError, match="only a person can change"):
        with_paused(text, "chat", True)


def test_the_file_keeps_its_mode_and_is_not_touched_where_nothing_changes(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.t.yaml"
    file.write_text(BLOCK)
    file.chmod(0o640)
    assert write_paused(file, "chat", True)
    assert file.stat().st_mode & 0o777 == 0o640
    written = file.stat().st_mtime_ns
    assert not write_paused(file, "chat", True)
    assert file.stat().st_mtime_ns == written
    assert write_paused(file, "chat", False)
    assert file.read_text() == BLOCK
    assert [found.name for found in tmp_path.iterdir()] == [file.name]

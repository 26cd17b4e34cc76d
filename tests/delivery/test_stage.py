"""A model of the hub comes into a folder once, whole, and what does not come says why. The real client, a small hub."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.plan.launches import model_name, service_launch
from infra.stack import StackError, parse_stack
from tests.delivery.hub import COMMIT, Hub, hub
from tests.render.stacks import config
from workloads.models.source import resolve
from workloads.models.stage import BAD_MODEL, FAILED, OK, staged
from workloads.spec.hub import MARKER, HubModel, hub_model

ROOT = Path(__file__).parents[2]
MODEL = "hf:acme/small"
FILES = {
    "config.json": b"{}",
    "tokenizer.json": b'{"a": 1}',
    "model.safetensors": bytes(range(256)) * 4096,
    "pytorch_model.bin": b"the same once more",
}
TOKEN = "hf_EXAMPLEPLANTED"


def run(one: Hub, folder: Path, model: str = MODEL, token: str = "") -> tuple[int, str]:
    """Exit code, and all that was printed."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGING"))}
    environ |= {"HF_ENDPOINT": one.url, "HF_HOME": str(folder.parent / "hf"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "workloads.models.stage", model, str(folder), "120"],
        cwd=ROOT,
        env={**environ, **({"HF_TOKEN": token} if token else {})},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "Traceback" not in ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != MARKER}


def test_a_model_comes_once_and_a_service_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "models/acme/small/main"
    with hub("acme/small", FILES) as one:
        code, said = run(one, folder)
        assert (code, f"commit {COMMIT}" in said) == (OK, True), said
        # Weights in another format are the same bytes again.
        assert contents(folder) == {name: content for name, content in FILES.items() if not name.endswith(".bin")}
        marker = staged(folder)
        assert marker is not None
        assert (marker["commit"], marker["revision"]) == (COMMIT, "main")
        assert resolve(str(folder)).layout == "hf"
        asked = len(one.asked)
        code, said = run(one, folder)
        assert (code, len(one.asked)) == (OK, asked)
        assert "already" in said


def test_a_line_that_breaks_is_taken_up_again(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with hub("acme/small", FILES, breaks={"model.safetensors": 500_000}) as one:
        code, said = run(one, folder)
        assert code == OK, said
        assert len(one.downloads("model.safetensors")) == 2
    assert contents(folder)["model.safetensors"] == FILES["model.safetensors"]


def test_what_an_ended_try_left_whole_is_not_asked_for_again(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with hub("acme/small", FILES) as one:
        assert run(one, folder)[0] == OK
        # As a pod leaves it that is evicted before the last file.
        (folder / MARKER).unlink()
        (folder / "model.safetensors").unlink()
        one.asked.clear()
        assert run(one, folder)[0] == OK
        assert [len(one.downloads(name)) for name in ("config.json", "tokenizer.json", "model.safetensors")] == [
            0,
            0,
            1,
        ]
    assert staged(folder) is not None


def test_a_folder_without_its_last_file_is_not_whole(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with hub("acme/small", FILES) as one:
        assert run(one, folder)[0] == OK
        (folder / "model.safetensors").write_bytes(b"cut")
        assert staged(folder) is None
        assert run(one, folder)[0] == OK
        assert contents(folder)["model.safetensors"] == FILES["model.safetensors"]


def test_the_token_opens_a_private_model_and_is_printed_nowhere(tmp_path: Path) -> None:
    with hub("acme/small", FILES, token=TOKEN) as one:
        code, said = run(one, tmp_path / "a", token=TOKEN)
        assert (code, TOKEN in said) == (OK, False)
        for path in (tmp_path / "a").rglob("*"):
            assert path.is_dir() or TOKEN.encode() not in path.read_bytes()
        code, said = run(one, tmp_path / "b", token=f"{TOKEN}wrong")
        assert (code, TOKEN in said) == (BAD_MODEL, False)
        assert "error: the hub has no model acme/small that this token may see" in said


@pytest.mark.parametrize(
    ("model", "behaviour", "code", "words"),
    [
        ("hf:acme/smal", {}, BAD_MODEL, "error: the hub has no model acme/smal"),
        ("hf:acme/small@v9", {}, BAD_MODEL, "error: hf:acme/small has no revision v9"),
        (MODEL, {"gated": True}, BAD_MODEL, "error: hf:acme/small is given only to those who accepted its terms"),
        ("hf:../small", {}, BAD_MODEL, "usage:"),
    ],
)
def test_why_a_model_does_not_come(
    tmp_path: Path, model: str, behaviour: dict[str, bool], code: int, words: str
) -> None:
    with hub("acme/small", FILES, **behaviour) as one:
        found, said = run(one, tmp_path / "model", model)
    assert (found, words in said) == (code, True), said
    assert staged(tmp_path / "model") is None


def test_a_repository_in_another_layout_is_told(tmp_path: Path) -> None:
    with hub("acme/small", {"model.bin": b"x", "README.md": b"y"}) as one:
        code, said = run(one, tmp_path / "model")
    assert (code, "holds no config.json with *.safetensors, found README.md" in said) == (BAD_MODEL, True), said


def test_a_hub_that_is_not_there_may_be_there_later(tmp_path: Path) -> None:
    with hub("acme/small", FILES) as one:
        pass
    code, said = run(one, tmp_path / "model")
    assert (code, "error: the hub did not give hf:acme/small" in said) == (FAILED, True), said


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("hf:acme/small", HubModel("acme", "small", "main")),
        ("hf:Acme/Small-2.1_b@refs/pr/3", HubModel("Acme", "Small-2.1_b", "refs/pr/3")),
        ("hf:acme", None),
        ("hf:acme/small/x", None),
        ("hf:acme/../x", None),
        ("hf:acme/small@", None),
        ("acme/small", None),
        ("hf:acme/sm all", None),
    ],
)
def test_how_a_model_of_the_hub_is_written(text: str, model: HubModel | None) -> None:
    assert hub_model(text) == model


def test_a_service_reads_where_it_is_staged_and_is_called_by_the_models_name() -> None:
    service = {"name": "chat", "pool": "small", "model": "hf:acme/small@v1.0"}
    stack = parse_stack(
        config(services=[service], jobs=[], pools=[{"name": "small", "generation": "v6e", "topology": "1x1"}])
    )
    launch = service_launch(stack, stack.services[0], "/storage")
    assert (launch.model, launch.model_name) == ("/storage/models/acme/small/v1.0", "small")
    assert service_launch(stack, stack.services[0], "/s", models="/m").model == "/m/acme/small/v1.0"
    assert model_name("hf:acme/small@v1.0") == "small"
    assert HubModel("a", "b", "refs/pr/3").folder == "a/b/refs--pr--3"


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("hf:https://huggingface.co/acme/small", "hf:acme/small"),
        ("hf:acme/small/tree/v1", "hf:acme/small@v1"),
        ("hf:small", None),
    ],
)
def test_another_form_is_told_with_the_nearest_right_one(written: str, nearest: str | None) -> None:
    services = [{"name": "chat", "pool": "small", "model": written}]
    with pytest.raises(StackError) as raised:
        parse_stack(config(services=services))
    (problem,) = [one for one in raised.value.problems if one.key == "tpu-ray:services[0].model"]
    assert (problem.value, problem.nearest) == (written, nearest)
    assert json.dumps(problem.model_dump())


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"files": {"config.json": 2}}'])
def test_a_marker_that_says_nothing_right_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER).write_text(text)
    assert staged(tmp_path) is None

"""A model of the hub on this machine: downloaded once for all stacks, again where it was lost, left by `destroy`."""

from pathlib import Path
from typing import Any

import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.local.model_resource import ModelStagedProvider, models_folder
from tests.delivery.hub import hub
from tests.delivery.test_stage import FILES, MODEL, TOKEN
from workloads.spec.hub import MARKER, hub_model

NAMED = hub_model(MODEL)
assert NAMED is not None
PLACE = NAMED.folder


@pytest.fixture
def props(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    return {"model": MODEL, "folder": str(models_folder() / PLACE)}


def test_it_is_downloaded_once_and_again_where_it_was_taken_away(
    props: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    provider = ModelStagedProvider()
    with hub("acme/small", FILES) as one:
        monkeypatch.setenv("HF_ENDPOINT", one.url)
        assert provider.create(props).outs == props
        weights = tmp_path / "home/models/acme/small/main/model.safetensors"
        assert weights.read_bytes() == FILES["model.safetensors"]
        asked = len(one.asked)
        # Another stack of this machine.
        provider.create(props)
        assert (len(one.asked), provider.diff("", props, props).changes) == (asked, False)
        assert provider.read("id", props).id == "id"

        provider.delete("id", props)
        assert weights.exists()
        weights.unlink()
        assert provider.diff("", props, props).changes
        assert provider.read("id", props).id == ""
        provider.update("id", props, props)
        assert weights.read_bytes() == FILES["model.safetensors"]
        assert provider.diff("", props, {**props, "model": f"{MODEL}@v2"}).changes


def test_the_environments_token_is_used_and_kept_nowhere(
    props: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with hub("acme/small", FILES, token=TOKEN) as one:
        monkeypatch.setenv("HF_ENDPOINT", one.url)
        with pytest.raises(PlatformError, match="the hub has no model acme/small that this token may see"):
            ModelStagedProvider().create(props)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        assert TOKEN not in repr(ModelStagedProvider().create(props).outs)
    for path in (tmp_path / "home").rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes()


def test_a_marker_alone_is_no_model(props: dict[str, Any]) -> None:
    folder = Path(props["folder"])
    folder.mkdir(parents=True)
    for text in ("", "{}", '{"files": {"config.json": 2}}'):
        (folder / MARKER).write_text(text)
        assert ModelStagedProvider().diff("", props, props).changes, text

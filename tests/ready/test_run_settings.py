"""A run that exists keeps its settings, and every preview says so until `run:` changes."""

import json
from typing import Any

import pytest

from infra.platforms.gke.run_settings import RunSettingsProvider


def props(run: str = "train-r7", uid: str = "u", **settings: object) -> dict[str, Any]:
    return {"run": run, "uid": uid, "settings": json.dumps(settings)}


def test_another_setting_is_said_and_is_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    provider = RunSettingsProvider()
    olds = provider.create(props(steps=200, seed=0)).outs
    assert olds is not None
    assert not provider.diff("train-r7", olds, props(steps=200, seed=0)).changes
    assert capsys.readouterr().err == ""
    for _ in range(2):
        assert not provider.diff("train-r7", olds, props(steps=400, seed=0)).changes
        said = "run train-r7 keeps its settings: the change of steps applies to the next run, when `run:` changes\n"
        assert capsys.readouterr().err == said


@pytest.mark.parametrize("news", [props("train-r8", steps=400), props(uid="another", steps=400)])
def test_another_run_is_remembered_with_its_own(news: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    provider, olds = RunSettingsProvider(), props(steps=200)
    assert provider.diff("train-r7", olds, news).changes
    assert provider.update("train-r7", olds, news).outs == news
    assert not provider.diff("train-r7", news, news).changes
    assert capsys.readouterr().err == ""

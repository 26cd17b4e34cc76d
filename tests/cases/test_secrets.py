"""Secrets that came out in clear."""

import json
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from typer.testing import CliRunner

from infra import program
from infra.cli.commands import app
from infra.platforms.gke.manifests import manifests
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import declared
from tests.cases.stacks import config, mistakes, pool, service

TOKEN = "hf_EXAMPLE"
STACK = config(pool(topology="2x2"), services=(service(),))


def test_the_token_is_a_secret_of_kubernetes_and_stands_nowhere_else() -> None:
    """pulumi#16383: read as a secret, so that the engine encrypts it wherever it goes."""
    resources = declared(STACK, secrets={"tpu-ray:hubToken": TOKEN})
    (secret,) = [one for one in resources if one.type == "kubernetes:core/v1:Secret"]
    assert secret.inputs["stringData"] == "[secret]"
    assert TOKEN not in json.dumps([dict(one.inputs) for one in resources])


KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1"}}],
    "users": [{"name": "me", "user": {"token": TOKEN}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "me"}}],
    "current-context": "c",
}


@pytest.mark.parametrize("cluster", [{"existing": "prod"}, {}], ids=["with its cluster's name", "alone"])
def test_the_users_own_login_is_a_secret_of_the_state(cluster: dict[str, Any], tmp_path: Path) -> None:
    """pulumi#16383, for a kubeconfig with a token in it: what a provider is told stands in `stack export`."""
    file = tmp_path / "kubeconfig.yaml"
    file.write_text(yaml.safe_dump(KUBECONFIG))
    stack = config(pool(topology="2x2"), services=(service(),), cluster={**cluster, "kubeconfig": str(file)})
    resources = declared(stack)
    (provider,) = [one for one in resources if one.type == "pulumi:providers:kubernetes"]
    assert provider.inputs["kubeconfig"] == "[secret]"
    assert TOKEN not in json.dumps([dict(one.inputs) for one in resources])


def test_the_manifests_hold_no_token() -> None:
    """pulumi#16383: neither `serveConfigV2` nor the environment of a pod."""
    stack = parse_stack({**STACK, "tpu-ray:hubToken": {"secure": "v1:x:y"}})
    assert isinstance(stack.platform, GkePlatform)
    text = json.dumps(manifests(stack.platform, stack))
    assert "secure" not in text
    assert "hubToken" not in text


INSIDE: list[tuple[str, Any]] = [
    ("services[0].model", {"tpu-ray:services": [service(model={"secure": "v1:x:y"})]}),
    ("services[0].hfToken", {"tpu-ray:services": [service(hfToken={"secure": "v1:x:y"})]}),
    ("pools", {"tpu-ray:pools": {"secure": "v1:x:y"}}),
    ("platform.image", {"tpu-ray:platform": {**STACK["tpu-ray:platform"], "image": {"secure": "v1:x:y"}}}),
    ("model", {"tpu-ray:model": {"hfToken": {"secure": "v1:x:y"}}}),
]


@pytest.mark.parametrize(("key", "changed"), INSIDE, ids=[key for key, _ in INSIDE])
def test_a_secret_inside_a_value_is_refused(key: str, changed: dict[str, Any]) -> None:
    """pulumi#6531: Python loses the mark of a secret inside an object."""
    found = mistakes({**STACK, **changed})
    assert key in found
    assert "v1:x:y" not in str(found)


@pytest.mark.parametrize("key", ["tpu-ray:services", "tpu-ray:pools", "tpu-ray:platform", "tpu-ray:other"])
def test_a_secret_that_the_engine_has_opened_is_refused_too(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """pulumi#6531, with plain `pulumi up`: the program gets it in clear, beside a list of the secret keys."""
    values = {name: json.dumps(value) for name, value in {**STACK, key: STACK.get(key, TOKEN)}.items()}
    monkeypatch.setattr(program, "deploy_to_platform", lambda *_: pytest.fail("it was taken"))

    def run() -> None:
        pulumi.runtime.set_all_config(values, [key])
        program.deploy()

    with pytest.raises(pulumi.RunError) as caught:
        copy_context().run(run)
    assert f"{key}: [secret]" in str(caught.value)
    assert TOKEN not in str(caught.value)


CLEAR: list[dict[str, Any]] = [
    {"tpu-ray:hubToken": TOKEN},
    {"tpu-ray:hubToken": [TOKEN]},
    {"tpu-ray:hubToken": {"value": TOKEN}},
    {"tpu-ray:hubToken": {"secure": TOKEN}},
    {"gcp:accessToken": TOKEN},
    {"tpu-ray:services": [service(env=[{"name": "HF_TOKEN", "value": TOKEN}])]},
    {"tpu-ray:hfToken": TOKEN},
    {"tpu-ray:hubtoken": TOKEN},
    {"tpu-ray:services": [service(hfToken=TOKEN)]},
    {"tpu-ray:services": [service(env={"HF_TOKEN": TOKEN})]},
]


@pytest.mark.parametrize("changed", CLEAR, ids=str)
@pytest.mark.parametrize("command", ["check", "plan", "render"])
def test_a_token_in_clear_is_refused_and_not_repeated(
    command: str, changed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pulumi#16383, for a stack file that everybody may read, and for the log of the pull request that shows it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text((Path(__file__).parents[2] / "Pulumi.yaml").read_text())
    file = tmp_path / "stacks" / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": {**STACK, **changed}}))
    arguments = {"check": [str(file)], "plan": ["-s", "dev"], "render": ["-s", "dev", "-o", "out"]}[command]
    ran = CliRunner().invoke(app, [command, *arguments])
    assert ran.exit_code == 2
    assert TOKEN not in ran.output
    assert not (tmp_path / "out").exists()

"""Which backend is used: the user's, in Pulumi's own order, else one on this machine."""

import json
from pathlib import Path

import pytest

from infra.automation.workspace import without_salt
from infra.pulumi_cli.backend import backend_url, choose_backend, chosen_by_user, state_dir


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: tpu-ray\nruntime: python\n")
    return tmp_path


def test_the_users_backend_goes_first(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "pulumi"
    home.mkdir()
    environ = {"PULUMI_HOME": str(home), "XDG_STATE_HOME": str(tmp_path / "state")}
    assert chosen_by_user(project, environ) is None
    (home / "credentials.json").write_text(json.dumps({"current": "https://stored"}))
    assert chosen_by_user(project, environ) == "https://stored"
    token = {**environ, "PULUMI_ACCESS_TOKEN": "pul-1"}
    assert "PULUMI_ACCESS_TOKEN" in str(chosen_by_user(project, token))
    (project / "Pulumi.yaml").write_text("name: tpu-ray\nruntime: python\nbackend: {url: gs://in-project}\n")
    assert chosen_by_user(project, token) == "gs://in-project"
    assert chosen_by_user(project, {**token, "PULUMI_BACKEND_URL": "s3://in-environment"}) == "s3://in-environment"


def test_a_users_backend_is_left_alone(project: Path, tmp_path: Path) -> None:
    environ = {"PULUMI_BACKEND_URL": "gs://mine", "XDG_STATE_HOME": str(tmp_path / "state")}
    backend = choose_backend(project, environ)
    assert backend.own is None
    assert backend.environment == {}
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"current": ""}'])
def test_a_broken_or_empty_credentials_file_means_logged_in_nowhere(
    project: Path, tmp_path: Path, content: str
) -> None:
    (tmp_path / "credentials.json").write_text(content)
    assert chosen_by_user(project, {"PULUMI_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "s")}) is None


def test_a_shell_with_tpu_ray_env_in_it_changes_nothing(project: Path, tmp_path: Path) -> None:
    environ = {"PULUMI_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    first = choose_backend(project, environ)
    second = choose_backend(project, {**environ, **first.environment})
    assert first == second
    assert first.own == state_dir(environ)
    assert first.environment["PULUMI_BACKEND_URL"] == backend_url(state_dir(environ))


def test_the_state_moves_with_the_clusters_that_it_tells_of(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "TPU_RAY_HOME": str(tmp_path / "home")}
    assert state_dir(environ) == tmp_path / "home" / "pulumi"


def test_the_passphrase_is_made_once(project: Path, tmp_path: Path) -> None:
    environ = {"PULUMI_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    choose_backend(project, environ)
    made = (state_dir(environ) / "passphrase").read_text()
    choose_backend(project, environ)
    assert (state_dir(environ) / "passphrase").read_text() == made
    assert len(made) >= 32
    assert [path.name for path in state_dir(environ).glob("passphrase*")] == ["passphrase"]


def test_only_an_unused_salt_is_left_out() -> None:
    plain = "config:\n  a:b: c\n"
    assert without_salt(plain + "encryptionsalt: v1:x\n") == plain
    assert without_salt(plain) == plain
    secret = "encryptionsalt: v1:x\nconfig:\n  a:b:\n    secure: v1:y\n"
    assert without_salt(secret) == secret

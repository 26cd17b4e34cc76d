"""Variables whose values are secrets, on one machine: from the environment, told where missing, kept nowhere."""

import json
from pathlib import Path
from typing import Any

import psutil
import pulumi
import pytest

from infra.platforms.local import secret_env
from infra.platforms.local.cluster import Status
from tests.local.test_same_as_gke import resources_of

VALUE = "sk-PLANTED"
POOLS = [{"name": "quad", "generation": "v6e", "topology": "4x4", "slices": 3}]
KEY = {"secret": "keys", "key": "api-key"}
JOB: dict[str, Any] = {"name": "mine", "pool": "quad", "entrypoint": "python my/train.py", "secret_env": {"A_KEY": KEY}}
SERVICE: dict[str, Any] = {
    "name": "app",
    "pool": "quad",
    "engine": {"kind": "app", "import_path": "my_app:build"},
    "secret_env": {"B_KEY": KEY, "JAX_KEY": KEY},
}


@pytest.fixture
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    return said


def test_a_variable_of_the_environment_is_passed_on_and_written_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, warned: list[str]
) -> None:
    monkeypatch.setenv("A_KEY", VALUE)
    made = resources_of(monkeypatch, tmp_path, POOLS, [], [JOB])
    assert warned == []
    assert "A_KEY" not in made["JobRun"][0][1]["env"]
    assert VALUE not in json.dumps(made, default=str)


def test_a_variable_that_the_processes_will_not_have_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, warned: list[str]
) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    monkeypatch.setenv("B_KEY", VALUE)
    # No setting of JAX's is passed on.
    monkeypatch.setenv("JAX_KEY", VALUE)
    resources_of(monkeypatch, tmp_path, POOLS, [SERVICE], [JOB])
    assert [line.partition(";")[0] for line in warned] == [
        "tpu-ray:services[0].secret_env.JAX_KEY: JAX_KEY is not in the environment of `up`, or not passed on",
        "tpu-ray:jobs[0].secret_env.A_KEY: A_KEY is not in the environment of `up`, or not passed on",
    ]


def test_a_cluster_that_runs_has_what_it_was_started_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, warned: list[str]
) -> None:
    class Head:
        role, identity = "head", psutil.Process()

    class State:
        nodes = (Head(),)

    monkeypatch.setattr(secret_env, "status", lambda _: Status(State(), ()))  # type: ignore[arg-type]
    started_with = {"JAX_KEY": VALUE, "B_KEY": VALUE}
    monkeypatch.setattr(psutil.Process, "environ", lambda _: started_with)
    monkeypatch.setenv("A_KEY", VALUE)
    resources_of(monkeypatch, tmp_path, POOLS, [SERVICE], [JOB])
    (line,) = warned
    assert line.startswith("tpu-ray:jobs[0].secret_env.A_KEY: A_KEY is not in the cluster that runs; export it, ")


def test_nothing_waits_for_a_service_that_is_not_to_be_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = {"name": "app", "pool": "quad", "engine": {"kind": "app", "import_path": "my_app:build"}}
    waited = resources_of(monkeypatch, tmp_path, POOLS, [plain], [])
    alone = resources_of(monkeypatch, tmp_path, POOLS, [{**plain, "wait": False}], [])
    assert [len(made["Ready"]) for made in (waited, alone)] == [1, 0]
    applications = [made["ServeApp"][0][1]["application"] for made in (waited, alone)]
    assert applications[0] == applications[1]

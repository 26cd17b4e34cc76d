"""`python -m workloads.submit_run` on a real API server, as the account that the stack makes for it."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.platforms.gke.schedule import LABEL, schedule_manifests
from infra.stack import GkePlatform, parse_stack
from tests.render.stacks import config
from tests.rig.kube.control_plane import ControlPlane, control_plane
from workloads.spec.run import JOB_VARIABLE, STOPPED_ANNOTATION, SUBMISSION_VARIABLE, TIME_OF_RUN, Submission
from workloads.submit_run import submit as begin
from workloads.submit_run import time_of

Json = dict[str, Any]
RUNS = "/apis/ray.io/v1/namespaces/ml/rayjobs"
MERGE = {"content-type": "application/merge-patch+json"}
NOW = datetime(2026, 12, 3, 3, 0, tzinfo=UTC)
MINUTES = int(NOW.timestamp()) // 60


def made(**job: object) -> dict[str, Any]:
    pools = [{"name": "big", "generation": "v6e", "topology": "4x4"}]
    nightly = {"name": "train", "pool": "big", "schedule": "0 3 * * *", **job}
    stack = parse_stack(config(pools=pools, services=[], jobs=[nightly]))
    assert isinstance(stack.platform, GkePlatform)
    return schedule_manifests(stack.platform, stack, stack.jobs[0])


def container(manifests: Mapping[str, Any]) -> Json:
    (found,) = manifests["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def variables(manifests: Mapping[str, Any]) -> dict[str, str]:
    """The container's plain variables, as Kubernetes sets them: `$$` is `$`."""
    return {
        entry["name"]: entry["value"].replace("$$", "$") for entry in container(manifests)["env"] if "value" in entry
    }


def test_a_run_is_called_by_the_time_that_its_job_was_made_for() -> None:
    later = datetime(2026, 12, 3, 3, 7, tzinfo=UTC)
    assert time_of(f"train-r1-{MINUTES}", later) == "2612030300"
    # Made by hand: `kubectl create job --from=cronjob/train-r1 now`.
    assert time_of("now", later) == time_of("", later) == "2612030307"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("schedule") / "plane") as running:
        running.take_kuberay("ml")
        with running.client() as client:
            paths = {
                "ServiceAccount": "/api/v1/namespaces/ml/serviceaccounts",
                "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/ml/roles",
                "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/ml/rolebindings",
                "CronJob": "/apis/batch/v1/namespaces/ml/cronjobs",
            }
            for kind, manifest in made().items():
                answer = client.post(paths[kind], params={"fieldValidation": "Strict"}, json=manifest)
                assert answer.is_success, answer.text
            while client.get(RUNS).status_code == httpx.codes.NOT_FOUND:
                pass
        yield running


@pytest.fixture
def account(plane: ControlPlane, tmp_path: Path) -> Path:
    """What a pod of the account finds in its folder."""
    with plane.client() as client:
        token = client.post("/api/v1/namespaces/ml/serviceaccounts/tpu-ray-train-r1/token", json={}).raise_for_status()
    (tmp_path / "token").write_text(token.json()["status"]["token"])
    (tmp_path / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    return tmp_path


@pytest.fixture(autouse=True)
def no_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "plane" in request.fixturenames:
        with request.getfixturevalue("plane").client() as client:
            assert client.delete(RUNS).is_success


def submit(plane: ControlPlane, account: Path, manifests: Mapping[str, Any], minutes: int = MINUTES) -> tuple[int, str]:
    """Exit code and what is printed, in a process of its own that gets nothing but what the pod gets."""
    url = httpx.URL(plane.url)
    code = f"import sys, pathlib; from workloads.submit_run import main; sys.exit(main(pathlib.Path({str(account)!r})))"
    environment = {
        **variables(manifests),
        JOB_VARIABLE: f"train-r1-{minutes}",
        "KUBERNETES_SERVICE_HOST": url.host,
        "KUBERNETES_SERVICE_PORT": str(url.port),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


def over(plane: ControlPlane, run: str, state: str = "Complete") -> None:
    with plane.client() as client:
        status = json.dumps({"status": {"jobDeploymentStatus": state}})
        client.patch(f"{RUNS}/{run}/status", content=status, headers=MERGE).raise_for_status()


@pytest.mark.rig
def test_a_run_begins_once_for_each_time(plane: ControlPlane, account: Path) -> None:
    assert submit(plane, account, made()) == (0, "run train-r1-2612030300 has begun")
    assert submit(plane, account, made()) == (0, "run train-r1-2612030300 has begun already")
    (run,) = plane.every(RUNS)
    assert run["metadata"]["labels"][LABEL] == "train-r1"
    (owner,) = run["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("CronJob", "train-r1")
    # Each run has a folder of its own, so that it is not taken for the one before it.
    assert '"run":"r1-2612030300"' in run["spec"]["entrypoint"]
    assert TIME_OF_RUN not in json.dumps(run)
    assert run["spec"]["shutdownAfterJobFinishes"] is True


@pytest.mark.rig
def test_no_run_begins_beside_another(plane: ControlPlane, account: Path) -> None:
    assert submit(plane, account, made())[0] == 0
    beside = submit(plane, account, made(), MINUTES + 1440)
    assert beside == (0, "run train-r1-2612040300 does not begin: train-r1-2612030300 still runs")
    over(plane, "train-r1-2612030300", "Failed")
    assert submit(plane, account, made(), MINUTES + 1440) == (0, "run train-r1-2612040300 has begun")


class Server:
    """The API server as far as `submit` asks it: one run before, in this state."""

    def __init__(self, state: str, annotations: dict[str, str], labels: dict[str, str]) -> None:
        metadata = {"name": "train-r1-2612020300", "creationTimestamp": "2026-12-02T03:00:00Z", "labels": labels}
        self.run = {"metadata": {**metadata, "annotations": annotations}, "status": {"jobDeploymentStatus": state}}
        self.begun: list[str] = []

    def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        if method == "POST":
            self.begun.append(body["metadata"]["name"])
        return {"items": [self.run], "metadata": {"uid": "1"}}


@pytest.mark.parametrize(
    ("state", "annotations", "begins"),
    [
        ("Suspended", {STOPPED_ANNOTATION: "2026-12-02T03:10:00Z"}, True),
        ("Suspending", {STOPPED_ANNOTATION: "2026-12-02T03:10:00Z"}, False),
        ("Suspended", {}, False),
        ("Complete", {}, True),
    ],
    ids=["stopped", "still stopping", "waits in a queue", "over"],
)
def test_a_run_that_somebody_stopped_is_over(state: str, annotations: dict[str, str], begins: bool) -> None:
    server: Any = Server(state, annotations, {})
    submission = Submission.model_validate_json(variables(made())[SUBMISSION_VARIABLE])
    said = begin(server, submission, "2612030300")
    assert bool(server.begun) == begins, said
    assert begins or said == "run train-r1-2612030300 does not begin: train-r1-2612020300 still runs"


@pytest.mark.rig
def test_only_so_many_runs_are_still_listed(plane: ControlPlane, account: Path) -> None:
    for day in range(4):
        code, said = submit(plane, account, made(keep_runs=2), MINUTES + 1440 * day)
        assert code == 0, said
        over(plane, said.split()[1])
    assert {run["metadata"]["name"] for run in plane.every(RUNS)} == {"train-r1-2612050300", "train-r1-2612060300"}


@pytest.mark.rig
def test_what_the_command_is_told_survives_the_way_to_the_run(plane: ControlPlane, account: Path) -> None:
    """Kubernetes reads `$(NAME)` in a variable's value, and the run's pattern is in one: it is escaped twice."""
    command, value = "python my/train.py --name 'a  b' && echo $HOME", "$(HOME) $$ `x`"
    code, said = submit(plane, account, made(entrypoint=command, env={"ODD": value}))
    assert code == 0, said
    (run,) = plane.every(RUNS)
    (worker,) = run["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    env = {one["name"]: one.get("value", "") for one in worker["template"]["spec"]["containers"][0]["env"]}
    # What stands in the RayJob is read by Kubernetes once more.
    assert env["ODD"].replace("$$", "$") == value
    assert env["TPU_RAY_ENTRYPOINT"].replace("$$", "$") == command
    assert json.loads(env["TPU_RAY_LAUNCH"])["run"] == "train-r1-2612030300"


@pytest.mark.rig
def test_the_account_may_do_this_and_nothing_else(plane: ControlPlane, account: Path) -> None:
    code, said = submit(plane, account, {**made(run="r2")})
    assert code == 1
    assert said.startswith("error: run train-r2-2612030300 does not begin: 403: cronjobs.batch")
    token = (account / "token").read_text()
    with httpx.Client(base_url=plane.url, verify=False, trust_env=False) as client:
        for path in ("/api/v1/namespaces/ml/secrets", "/api/v1/namespaces/ml/pods", "/apis/batch/v1/cronjobs"):
            assert client.get(path, headers={"Authorization": f"Bearer {token}"}).status_code == 403


@pytest.mark.rig
def test_an_api_server_that_is_away_is_an_error_of_one_line(plane: ControlPlane, account: Path) -> None:
    url = httpx.URL(plane.url)
    away = ControlPlane(str(url.copy_with(port=1)), plane.ca_file, plane.token, plane.kuberay)
    code, said = submit(away, account, made())
    assert (code, len(said.splitlines())) == (1, 1)
    assert said.startswith("error: the API server cannot be reached: ")

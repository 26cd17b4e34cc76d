"""The RayJob of a job, and what begins its runs at their times."""

import json
import re
import shlex
import subprocess
import sys
from subprocess import list2cmdline
from typing import Any

import jsonschema
import pytest

from infra.platforms.gke.job_manifest import ray_job
from infra.platforms.gke.manifests import manifests
from infra.platforms.gke.schedule import schedule_manifests
from infra.stack import GkePlatform, parse_stack
from tests.render.kuberay import VERSIONS, module_dir, schema
from tests.render.stacks import GKE, config
from workloads.spec import DeclaredRun
from workloads.spec.run import TIME_OF_RUN

Json = dict[str, Any]


def stack_of(**job: object) -> tuple[GkePlatform, Any]:
    pools = [{"name": "big", "generation": "v6e", "topology": "4x4"}]
    stack = parse_stack(
        config(platform=GKE, pools=pools, services=[], jobs=[{"name": "train", "pool": "big", "run": "r7", **job}])
    )
    assert isinstance(stack.platform, GkePlatform)
    return stack.platform, stack


def run_of(**job: object) -> Json:
    platform, stack = stack_of(**job)
    return dict(ray_job(platform, stack, stack.jobs[0]))


def containers(run: Json) -> list[Json]:
    cluster = run["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"]["containers"][0] for group in groups]


def env_of(container: Json) -> dict[str, str]:
    """As Kubernetes sets it: `$$` is `$`."""
    names = [entry["name"] for entry in container["env"]]
    assert len(names) == len(set(names)), "server-side apply takes a name once"
    return {entry["name"]: entry["value"].replace("$$", "$") for entry in container["env"] if "value" in entry}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "job",
    [
        {"entrypoint": "python my/train.py", "env": {"A": "b"}, "retries": 3, "keep_cluster_s": 0, "suspend": True},
        {"entrypoint": "a && b"},
        {"retries": 1, "env": {"JAX_PLATFORMS": "tpu"}},
    ],
)
def test_every_form_of_a_run_is_valid_for_kuberay(version: str, job: Json) -> None:
    jsonschema.validate(run_of(**job), schema(version, "RayJob"))


def test_a_command_of_ones_own_gets_the_run_and_its_slice_as_one_value_on_all_hosts() -> None:
    run = run_of(entrypoint="python my/train.py --steps 3", env={"LOG_LEVEL": "debug"})
    assert run["spec"]["entrypoint"] == "python my/train.py --steps 3"
    for container in containers(run):
        env = env_of(container)
        assert env["LOG_LEVEL"] == "debug"
        told = DeclaredRun.model_validate_json(env["TPU_RAY_LAUNCH"])
        assert (told.run, told.pool, told.slice.topology, told.slice.hosts) == ("train-r7", "big", "4x4", 4)
        assert told.folder.endswith("/train-r7")
        assert told.export == f"{told.folder}/export"


def test_a_process_of_the_run_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    value = env_of(containers(run_of(entrypoint="python x.py"))[0])["TPU_RAY_LAUNCH"]
    monkeypatch.setenv("TPU_RAY_LAUNCH", value)
    assert DeclaredRun.here().run == "train-r7"


def test_the_recipe_is_told_only_what_is_its_own() -> None:
    run = run_of(retries=2, env={"LOG_LEVEL": "debug"}, keep_cluster_s=0)
    told = json.loads(shlex.split(run["spec"]["entrypoint"])[3])
    assert not {"retries", "env", "keep_cluster_s", "suspend", "wait", "schedule"} & set(told["job"])
    assert "TPU_RAY_LAUNCH" not in env_of(containers(run)[0])
    assert env_of(containers(run)[1])["LOG_LEVEL"] == "debug"


@pytest.mark.parametrize("value", ["$HOME", "$(HOSTNAME)", "a $$ b", "`id`", 'say "x"', "line\nline", "ä"])
def test_a_value_reaches_the_run_as_it_was_written(value: str) -> None:
    assert all(env_of(one)["ODD"] == value for one in containers(run_of(env={"ODD": value})))


COMMANDS = [
    "printf %s plain --x=1,2 a/b:c@d",
    "printf '%s' 'two  words'",
    "printf one && printf two",
    'printf "%s" "$GREETING"',
    "printf '%s' '{\"a\": [1, 2]}' | cat; printf ' `x` $ * '",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_means_in_the_cloud_what_it_means_on_one_machine(command: str) -> None:
    """KubeRay puts it into a shell command of the submitter, `ray job submit` joins the words by the rules of Windows
    (ray/dashboard/modules/job/cli.py), and the head's shell reads what comes of that."""
    run = run_of(entrypoint=command, env={"GREETING": "hi  $there"})
    env = {"PATH": "/usr/bin:/bin", **env_of(containers(run)[0])}
    words = f"{sys.executable} -c 'import json, sys; print(json.dumps(sys.argv[1:]))' {run['spec']['entrypoint']} ;"
    submitter = subprocess.run(
        ["bash", "-c", words], capture_output=True, text=True, check=True, env={"PATH": env["PATH"]}
    )
    on_the_head = list2cmdline(json.loads(submitter.stdout)).replace("python ", f"{sys.executable} ", 1)
    there = subprocess.run(on_the_head, shell=True, capture_output=True, text=True, check=True, env=env).stdout
    here = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, env=env).stdout
    assert there == here != ""


def test_tries_and_limits_are_kuberays() -> None:
    spec = run_of(retries=3, timeout_s=600, keep_cluster_s=60)["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (3, 600, 60)


def test_a_schedule_is_rendered_with_the_account_that_begins_its_runs() -> None:
    platform, stack = stack_of(schedule="@daily", time_zone="Europe/Berlin", keep_runs=3, suspend=True)
    files = manifests(platform, stack)
    assert set(files) == {f"{kind}-train.yaml" for kind in ("serviceaccount", "role", "rolebinding", "cronjob")}
    made: Any = schedule_manifests(platform, stack, stack.jobs[0])
    spec = made["CronJob"]["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["suspend"]) == ("@daily", "Europe/Berlin", True)
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"tpu-ray/pool": "cpu"}
    assert "google.com/tpu" not in json.dumps(pod["containers"][0]["resources"])
    # Its run is suspended by no field of its own: the schedule is.
    submission = json.loads(pod["containers"][0]["env"][0]["value"].replace("$$", "$"))
    pattern = json.loads(submission["manifest"])
    assert "suspend" not in pattern["spec"]
    assert pattern["metadata"]["name"] == f"train-r7-{TIME_OF_RUN}"
    # Its Jobs have minutes behind the name, its runs their time: KubeRay calls the Job of a submitter as the run.
    assert made["CronJob"]["metadata"]["name"] == "train-r7"


@pytest.mark.parametrize("version", VERSIONS)
def test_kuberays_own_schedules_are_off_where_nobody_turns_them_on(version: str) -> None:
    """Why they are not used. A release of which this is not so is one to use them with."""
    gates = (module_dir(version) / "pkg/features/features.go").read_text()
    defined = (module_dir(version) / "config/crd/bases/ray.io_raycronjobs.yaml").exists()
    assert bool(re.search(r"RayCronJob:\s+{Default: false", gates)) == defined


def test_a_scheduled_run_stands_in_the_queue_of_its_pool() -> None:
    pools = [
        {"name": "big", "generation": "v6e", "topology": "4x4", "capacity": "queued", "slices": {"min": 0, "max": 1}}
    ]
    nightly = {"name": "train", "pool": "big", "schedule": "0 3 * * *"}
    stack = parse_stack(config(pools=pools, services=[], jobs=[nightly]))
    assert isinstance(stack.platform, GkePlatform)
    made: Any = schedule_manifests(stack.platform, stack, stack.jobs[0])
    (container,) = made["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    pattern = json.loads(json.loads(container["env"][0]["value"].replace("$$", "$"))["manifest"])
    assert pattern["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "tpu-ray"

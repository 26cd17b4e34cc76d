"""The image, the lock file, the table of versions and what is installed say the same; a workload notices when not."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from infra.plan.launches import job_launch, service_launch, versions
from infra.stack import GkePlatform, parse_stack
from tests.render.stacks import GKE, config
from workloads.spec import JobLaunch, ServiceLaunch
from workloads.spec.versions import LOCKED, Versions, installed
from workloads.train.driver import FAILED, run
from workloads.versions import WrongVersions, check_versions

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())
PACKAGES = {package["name"]: package["version"] for package in LOCK["package"]}


def test_the_table_is_the_lock_file() -> None:
    for name in ("ray", "jax", "jaxlib"):
        assert getattr(LOCKED, name) == PACKAGES[name], name
    assert Version(LOCKED.python) in Requirement(f"python{LOCK['requires-python']}").specifier
    # The lock file may get a line for libtpu; until then jax's own pin is what holds it.
    assert LOCKED.libtpu == PACKAGES.get("libtpu", LOCKED.libtpu)


def test_libtpu_is_one_that_this_jax_asks_for() -> None:
    assert importlib.metadata.version("jax") == LOCKED.jax
    needs = [Requirement(line) for line in importlib.metadata.requires("jax") or []]
    (libtpu,) = [need for need in needs if need.name == "libtpu"]
    assert str(LOCKED.libtpu) in libtpu.specifier
    assert f"libtpu=={LOCKED.libtpu}\n" in DOCKERFILE


def test_the_image_is_rays_own_for_tpu_hosts_with_that_ray_and_python() -> None:
    (base,) = re.findall(r"^FROM (\S+)$", DOCKERFILE, re.MULTILINE)
    assert base == f"rayproject/ray:{LOCKED.ray}-py{LOCKED.python.replace('.', '')}-tpu"
    assert GkePlatform.model_fields["ray_version"].default == LOCKED.ray


def test_the_image_installs_what_is_locked_and_no_more() -> None:
    (export,) = re.findall(r"uv export (.*?) -o", DOCKERFILE)
    assert {"--frozen", "--no-dev", "--no-emit-project"} <= set(export.split())
    assert set(re.findall(r"--extra (\S+)", export)) == {"workloads", "demo"}
    installs = [line for line in DOCKERFILE.splitlines() if "uv pip install" in line]
    assert installs
    assert all("--no-deps" in line for line in installs)
    # What `tpu-ray` is installed from still has these lines, so that the image's own edit of them works.
    project = (ROOT / "pyproject.toml").read_text()
    assert re.search(r"^packages = ", project, re.MULTILINE)
    assert re.search(r"^\[project\.scripts\]\n(.+\n)+\n", project, re.MULTILINE)


def test_what_is_asked_of_an_image_is_the_lock_file_with_the_stacks_ray() -> None:
    stack = parse_stack(config(platform={**GKE, "ray_version": "2.61.0"}))
    assert versions(stack) == LOCKED.model_copy(update={"ray": "2.61.0"})


def test_this_machine_asks_for_what_it_has() -> None:
    stack = parse_stack(config(platform="local"))
    service, job = service_launch(stack, stack.services[0], "/s"), job_launch(stack, stack.jobs[0], "/s")
    assert service.versions == job.versions == installed()
    check_versions(ServiceLaunch.model_validate_json(service.model_dump_json()).versions)
    check_versions(JobLaunch.model_validate_json(job.model_dump_json()).versions)


def test_a_launch_without_a_wish_is_right_anywhere() -> None:
    check_versions(None)


def test_what_differs_and_what_is_missing_is_told_with_the_next_step() -> None:
    found = LOCKED.model_copy(update={"jax": "0.9.1", "libtpu": None})
    with pytest.raises(WrongVersions) as raised:
        check_versions(LOCKED, found)
    wanted, _, rest = str(raised.value).partition("found: ")
    assert "jax 0.10.2" in wanted
    assert rest.startswith("jax 0.9.1, libtpu not installed. next: build the image")
    assert "platform.image" in rest


def test_a_newer_libtpu_than_asked_is_not_asked_where_nothing_is_wanted() -> None:
    check_versions(Versions(python=LOCKED.python), LOCKED)


def test_a_run_ends_before_it_asks_for_a_slice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = parse_stack(config(platform="local"))
    launch = job_launch(stack, stack.jobs[0], str(tmp_path)).model_copy(
        update={"versions": installed().model_copy(update={"jax": "0.0.1"})}
    )
    assert run(launch) == FAILED
    assert "wanted: python" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_build_ends_where_something_is_not_of_its_version() -> None:
    ran = subprocess.run([sys.executable, "-m", "workloads.versions"], cwd=ROOT, capture_output=True, text=True)
    if installed() == LOCKED:
        assert ran.returncode == 0
    else:
        assert ran.returncode == 1
        assert ran.stderr.startswith("the image holds other versions")
        assert "Traceback" not in ran.stderr

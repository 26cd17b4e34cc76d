"""An archive as Ray gets it: by a `file://` address, in front of what is installed, also in what tasks start."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from infra.plan.code import ROOT, SERVE_ENTRY, archive_of

pytestmark = pytest.mark.slow

PROGRAM = """
import json, os, sys
import ray

ray.init(
    address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=sys.argv[2],
    runtime_env={"working_dir": sys.argv[1]},
)

@ray.remote(num_cpus=1)
class Host:
    def where(self):
        import workloads.serve.errors as module
        return module.MARK, module.__file__, os.getcwd()

@ray.remote(num_cpus=1)
def driver():
    # As a replica does with its hosts: nothing is said of the code.
    return ray.get(Host.remote().where.remote())

print("FOUND", json.dumps(ray.get(driver.remote())))
"""


def test_edited_code_is_what_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "workloads", tmp_path / "workloads", ignore=shutil.ignore_patterns("__pycache__"))
    edited = tmp_path / "workloads/serve/errors.py"
    edited.write_text(f"{edited.read_text()}\nMARK = 'edited'\n")
    archive = archive_of(SERVE_ENTRY, tmp_path)
    bucket = tmp_path / "mnt/my-bucket/code"
    bucket.mkdir(parents=True)
    (bucket / archive.name).write_bytes(archive.zipped())
    # Ray's sockets lie below its folder, and a socket's path has 107 bytes at most.
    temp = tempfile.mkdtemp(prefix="tr-", dir="/tmp")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
    try:
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, f"file://{bucket / archive.name}", temp],
            cwd=tmp_path,
            env={**environ, "RAY_USAGE_STATS_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("FOUND ")]
    mark, file, folder = json.loads(line.removeprefix("FOUND "))
    assert mark == "edited"
    assert Path(file).is_relative_to(folder)
    assert not Path(folder).is_relative_to(tmp_path)

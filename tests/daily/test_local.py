"""The daily commands on a local stack, as their user types them: one stack's life, in the order of the tests."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.platforms.local import cluster
from tests.checkout import ROOT
from tests.whole.checkout import LocalCheckout

pytestmark = pytest.mark.slow

SCRIPT = """\
import os, sys, time
import jax
hosts, host = int(os.environ["TPU_RAY_HOSTS"]), int(os.environ["TPU_RAY_HOST"])
if hosts > 1:
    jax.distributed.initialize(num_processes=hosts, process_id=host)
print("devices", jax.local_device_count(), jax.device_count(), sorted(os.listdir(".")), flush=True)
if sys.argv[1:]:
    sys.exit(int(sys.argv[1]))
"""
APP = {"kind": "app", "import_path": "tests.daily.app:build", "args": {"word": "hello", "pool": "single"}}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCheckout]:
    made = LocalCheckout(tmp_path_factory.mktemp("daily"))
    made.environment["PYTHONPATH"] = str(ROOT)
    made.config |= {
        "tpu-ray:pools": [
            {"name": "single", "generation": "v6e", "topology": "1x1"},
            {
                "name": "pair",
                "generation": "v6e",
                "topology": "2x4",
                "machine_type": "ct6e-standard-4t",
                "slices": {"min": 0, "max": 1},
            },
        ],
        "tpu-ray:services": [{"name": "hello", "pool": "single", "engine": APP, "ready_timeout_s": 300}],
        "tpu-ray:jobs": [],
    }
    made.write()
    work = made.root / "work"
    work.mkdir()
    (work / "my.py").write_text(SCRIPT)
    (work / "data.txt").write_text("1")
    try:
        yield made
    finally:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TPU_RAY_HOME", str(made.home))
            cluster.stop("local", print)


def ran(checkout: LocalCheckout, command: str) -> subprocess.CompletedProcess[str]:
    """A `tpu-ray` command in the working directory of the stack's user."""
    return subprocess.run(
        ["bash", "-c", f"tpu-ray {command}"],
        cwd=checkout.root / "work",
        env=checkout.environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def hears() -> None:
    """Ctrl-C reaches a command also where this test's own parent ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def service(checkout: LocalCheckout, expect: int) -> dict[str, Any]:
    found: dict[str, Any] = checkout.tpu_ray("status", expect)["services"][0]
    return found


def answer(checkout: LocalCheckout) -> tuple[int, str]:
    told = httpx.get(f"http://127.0.0.1:{checkout.http_port}/hello", timeout=30, trust_env=False)
    return told.status_code, told.text


def states(checkout: LocalCheckout) -> dict[str, str]:
    listed = json.loads(checkout.run("tpu-ray jobs list -s local --json"))
    return {run["run"]: run["state"] for run in listed}


def test_before_and_after_up_status_says_how_it_is(checkout: LocalCheckout) -> None:
    before = checkout.tpu_ray("status", expect=3)
    assert (before["up"], before["services"][0]["state"]) == (False, "absent")
    assert checkout.tpu_ray("up")["ok"]
    after = checkout.tpu_ray("status")
    assert [(pool["name"], pool["slices_there"]) for pool in after["pools"]] == [("single", 1), ("pair", 1)]
    (hello,) = after["services"]
    assert (hello["state"], hello["replicas_ready"], hello["reason"]) == ("ready", 1, "")
    assert hello["url"] == f"http://127.0.0.1:{checkout.http_port}/hello"


def test_the_log_of_a_service_is_that_of_its_replicas_and_goes_on(checkout: LocalCheckout) -> None:
    assert answer(checkout) == (200, "hello")
    lines = [json.loads(line) for line in checkout.run("tpu-ray logs hello -s local --json").splitlines()]
    assert any("this replica says hello" in line["line"] for line in lines)
    assert len({line["source"] for line in lines}) == 1
    follow = ["bash", "-c", "exec tpu-ray logs -f hello -s local --lines 1"]
    with subprocess.Popen(
        follow, cwd=checkout.root, env=checkout.environment, stdout=subprocess.PIPE, text=True, preexec_fn=hears
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            httpx.get(f"http://127.0.0.1:{checkout.http_port}/hello/newly", timeout=30, trust_env=False)
            for line in process.stdout:
                if "asked for /hello/newly" in line:
                    break
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()


def test_a_submitted_command_runs_on_every_host_of_a_slice_with_its_files(checkout: LocalCheckout) -> None:
    done = ran(checkout, "submit -s local -p pair -n both -- python my.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "both"
    assert "[host 0] devices 4 8 ['data.txt', 'my.py']" in lines
    assert "[host 1] devices 4 8 ['data.txt', 'my.py']" in lines
    assert states(checkout) == {"both": "succeeded"}


def test_its_exit_code_is_the_commands(checkout: LocalCheckout) -> None:
    done = ran(checkout, "submit -s local -p single -n seven --json -- python my.py 7")
    assert done.returncode == 7
    seen = json.loads(done.stdout)
    assert (seen["state"], seen["exit_code"], seen["submitted"]) == ("failed", 7, True)
    assert "devices 1 1" in done.stderr
    again = ran(checkout, "submit -s local -p single -n seven -- python my.py")
    assert (again.returncode, "a run of this name is there already" in again.stderr) == (2, True)
    log = checkout.run("tpu-ray logs -f seven -s local --lines 1")
    assert log.strip() == "error: the command ended with 7"


def test_a_run_that_is_left_goes_on_until_it_is_stopped(checkout: LocalCheckout) -> None:
    command = "exec tpu-ray submit -s local -p single -n long -- python -c 'import time; print(42); time.sleep(9999)'"
    with subprocess.Popen(
        ["bash", "-c", command],
        cwd=checkout.root / "work",
        env=checkout.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line == "42\n":
                    break
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "`tpu-ray jobs stop long -s local`" in errors
    assert states(checkout)["long"] == "running"
    late = ran(checkout, "submit -s local -p single -n late --wait 1 -- python my.py")
    assert (late.returncode, "no slice for this workload" in late.stdout) == (1, True)
    assert "submitted long" in late.stdout, "it says who has the slice"
    checkout.run("tpu-ray jobs stop long -s local")
    assert states(checkout)["long"] == "stopped"
    checkout.run("tpu-ray jobs stop job/long -s local")
    until = time.monotonic() + 30
    while left := sleeping():
        assert time.monotonic() < until, left


def sleeping() -> list[str]:
    """Commands of the stopped run that live on."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if "print(42); time.sleep(9999)" in command and "tpu-ray" not in command and process.name != str(os.getpid()):
            found.append(command)
    return found


def test_a_paused_service_takes_no_slice_and_comes_back_at_its_url(checkout: LocalCheckout) -> None:
    text = checkout.stack_file.read_text()
    checkout.config["tpu-ray:services"].append({"name": "later", "pool": "pair", "engine": APP})
    checkout.write()
    with_another = checkout.stack_file.read_text()
    paused = checkout.tpu_ray("pause hello")
    assert paused["ok"]
    assert checkout.stack_file.read_text() == with_another.replace("name: hello\n", "name: hello\n    paused: true\n")
    assert answer(checkout)[0] == 404
    seen = checkout.tpu_ray("status", expect=4)["services"]
    assert [one["state"] for one in seen] == ["paused", "absent"], "nothing else of the file was brought up"
    del checkout.config["tpu-ray:services"][1]
    checkout.config["tpu-ray:services"][0]["paused"] = True
    checkout.write()
    assert checkout.tpu_ray("preview --expect-no-changes")["ok"]
    assert checkout.tpu_ray("up")["ok"]
    assert service(checkout, 0)["state"] == "paused", "`up` does not bring it back"
    told = checkout.run("tpu-ray preview -s local 2>&1")
    assert "service hello is paused: `tpu-ray resume hello -s local`" in told
    assert "answers: http://" in checkout.run("tpu-ray resume hello -s local")
    assert checkout.stack_file.read_text() == text
    assert answer(checkout) == (200, "hello")
    assert checkout.tpu_ray("preview --expect-no-changes")["ok"]


def test_a_service_that_fails_has_its_reason_in_status(checkout: LocalCheckout) -> None:
    engine = {**APP, "args": {"word": "never", "pool": "single"}}
    checkout.config["tpu-ray:services"] = [
        {"name": "hello", "pool": "single", "engine": engine, "ready_timeout_s": 300},
    ]
    checkout.write()
    assert not checkout.tpu_ray("up", expect=1)["ok"]
    seen = service(checkout, 4)
    assert seen["state"] in ("failed", "absent")


def test_what_a_user_mistypes_gets_the_nearest_and_no_traceback(checkout: LocalCheckout) -> None:
    for command in (
        "logs helo -s local",
        "jobs stop bot -s local",
        "pause helo -s local",
        "submit -s local -p pai -- x",
    ):
        done = ran(checkout, f"{command} -s local" + (" -- x" if "submit" in command else ""))
        assert done.returncode == 2, done.stderr
        assert "nearest: " in done.stderr
        assert "Traceback" not in done.stderr

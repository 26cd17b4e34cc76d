"""The same tokens from one device, from 16 devices, and from four processes with four devices each."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.models import toy

DEADLINE_S = 300


def start(folder: Path, devices: int, *distributed: str) -> "subprocess.Popen[str]":
    env = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    command = [sys.executable, "-m", "tests.engine.drive", str(folder), *distributed]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def results(processes: list["subprocess.Popen[str]"]) -> list[dict[str, Any]]:
    try:
        outputs = [process.communicate(timeout=DEADLINE_S) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (_, err) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, err[-3000:]
    return [json.loads(out.strip().splitlines()[-1]) for out, _ in outputs]


@pytest.mark.slow
def test_tokens_do_not_depend_on_the_mesh(tmp_path: Path) -> None:
    folder = toy.hf_folder(tmp_path / "toy")
    [one] = results([start(folder, 1)])
    [many] = results([start(folder, 16)])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    four = results([start(folder, 4, address, "4", str(rank)) for rank in range(4)])
    assert one["mesh"] == {"data": 1, "tensor": 1}
    assert [found["mesh"] for found in (many, *four)] == [{"data": 2, "tensor": 8}] * 5
    assert [found["tokens"] for found in (many, *four)] == [one["tokens"]] * 5
    assert {found["late_compiles"] for found in (one, many, *four)} == {0}

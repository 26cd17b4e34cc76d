"""A command that is terminated takes Pulumi's engine with it."""

import signal
import subprocess
import sys
from pathlib import Path

ENGINE = """\
#!/bin/bash
trap 'echo interrupted >> told; exit' INT
echo ready
while true; do sleep 0.1; done
"""
COMMAND = """\
import subprocess, sys
from infra.cli.interrupt import terminated_as_interrupted
# As the Automation API starts it: `subprocess.run` would kill it a quarter of a second after an interrupt.
engine = subprocess.Popen(["./pulumi"], stdout=subprocess.PIPE)
engine.stdout.readline()
try:
    with terminated_as_interrupted():
        print("ready", flush=True)
        engine.wait()
except KeyboardInterrupt:
    engine.wait()
    sys.exit(130)
"""


def test_sigterm_interrupts_the_engine_too(tmp_path: Path) -> None:
    engine = tmp_path / "pulumi"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    command = subprocess.Popen([sys.executable, "-c", COMMAND], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    with command.stdout as shown:
        assert shown.readline() == "ready\n"
        command.send_signal(signal.SIGTERM)
        assert command.wait(60) == 130
    assert (tmp_path / "told").read_text() == "interrupted\n"

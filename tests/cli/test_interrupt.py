"""A command that is terminated takes Pulumi's engine with it."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

# Python sets its own handler also where SIGINT came ignored, as in the background of a script; a shell's trap does not.
ENGINE = f"""\
#!{sys.executable}
import pathlib, signal, sys
def told(*_):
    pathlib.Path("told").write_text("interrupted\\n")
    sys.exit()
signal.signal(signal.SIGINT, told)
print("ready", flush=True)
while True:
    signal.pause()
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
    started = [sys.executable, "-c", COMMAND]
    with subprocess.Popen(started, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True) as command:
        assert command.stdout is not None
        try:
            assert command.stdout.readline() == "ready\n"
            command.send_signal(signal.SIGTERM)
            assert command.wait(60) == 130
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)
    assert (tmp_path / "told").read_text() == "interrupted\n"

"""The provider's process ends with the engine that started it."""

import subprocess
import sys

WATCHING = """
import sys, psutil
from infra.platforms.dynamic import _watch
_watch(psutil.Process(int(sys.argv[1])))
"""


def test_it_waits_while_the_engine_lives_and_ends_when_it_is_killed() -> None:
    engine = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        provider = subprocess.Popen([sys.executable, "-c", WATCHING, str(engine.pid)])
        try:
            try:
                provider.wait(timeout=5)
                raise AssertionError("it ended while the engine lived")
            except subprocess.TimeoutExpired:
                pass
            engine.kill()
            assert provider.wait(timeout=60) == 1
        finally:
            provider.kill()
            provider.wait()
    finally:
        engine.kill()
        engine.wait()

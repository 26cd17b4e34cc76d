"""Run a command; append its time, its peak memory (it and all it started, resident, sampled) and its result to a file.

Usage: measured.py NAME SUMMARY_FILE COMMAND...
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

SAMPLE_S = 1.0


def tree_gib(pid: int) -> float:
    """Resident memory of a process and its descendants, in GiB; pages they share are counted once for each."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.Error:
        return 0.0
    total = 0
    for process in family:
        try:
            total += process.memory_info().rss - process.memory_info().shared
        except psutil.Error:
            continue
    return float(total) / 2**30


def main(name: str, summary: Path, command: list[str]) -> int:
    started = time.monotonic()
    process = subprocess.Popen(command)
    peak = 0.0
    done = threading.Event()

    def sample() -> None:
        nonlocal peak
        while not done.wait(SAMPLE_S):
            peak = max(peak, tree_gib(process.pid))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    code = process.wait()
    done.set()
    sampler.join()
    result = "passed" if code == 0 else f"FAILED ({code})"
    with summary.open("a") as file:
        file.write(f"{name:<32} {time.monotonic() - started:8.1f} {peak:10.2f}  {result}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))

"""Getting a Pulumi CLI: the one that is there, else the official installer, else a build from Go modules."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.pulumi_cli.gobuild import BuildError, build
from infra.pulumi_cli.locate import BUILD_VERSION, CliNotFound, PulumiCli, built_root, cache_dir, find_cli
from infra.pulumi_cli.locate import installed_root as install_target

INSTALL_TIMEOUT_S = 300
"""The official archive is about 200 MB. Without a network the installer gives up within seconds."""

Say = Callable[[str], None]


@contextmanager
def only_one(cache: Path, say: Say) -> Iterator[None]:
    """Hold the cache's lock, so that two set-ups at once do not build twice. The lock goes with the process."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "pulumi.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is getting the Pulumi CLI; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def obtain_cli(say: Say) -> PulumiCli:
    """A usable CLI, got by the first way that works. `say` gets progress lines.

    Raises:
        CliNotFound: no way worked; the text tells each one's reason.
    """
    found, refused = find_cli()
    if found is not None:
        return found
    cache = cache_dir()
    with only_one(cache, say):
        found, refused = find_cli()
        if found is not None:
            return found
        for reason in refused:
            say(f"not used: {reason}")
        reasons = list(refused)
        for way in (run_installer, run_build):
            failure = way(cache, say)
            if failure is None:
                found, refused = find_cli()
                if found is not None:
                    return found
                failure = "; ".join(refused)
            say(failure)
            reasons.append(failure)
    raise CliNotFound(
        "there is no usable Pulumi CLI:\n"
        + "\n".join(f"  - {reason}" for reason in reasons)
        + f"\nInstall Pulumi {BUILD_VERSION} or newer so that `pulumi version` works, or install Go and run this again."
    )


def run_installer(cache: Path, say: Say) -> str | None:
    """The official installer into the cache; None when it worked, else one line that says why not."""
    root = install_target(cache)
    partial = root.with_name(f"{root.name}.part{os.getpid()}")
    say(f"installing the Pulumi CLI {BUILD_VERSION} with the official installer")
    process = subprocess.Popen(
        [sys.executable, "-m", "infra.pulumi_cli.installer", str(partial), BUILD_VERSION],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=INSTALL_TIMEOUT_S)
        if process.returncode == 0:
            shutil.rmtree(root, ignore_errors=True)
            partial.rename(root)
            return None
        reason = errors.strip().splitlines()[-1] if errors.strip() else f"exit code {process.returncode}"
    except subprocess.TimeoutExpired:
        reason = f"not done after {INSTALL_TIMEOUT_S} s"
    finally:
        # Also where the user interrupts: the installer has a session of its own, which no Ctrl-C reaches.
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        shutil.rmtree(partial, ignore_errors=True)
    return f"the official installer did not work ({reason})"


def run_build(cache: Path, say: Say) -> str | None:
    """A build from Go modules into the cache; None when it worked, else one line that says why not."""
    try:
        build(built_root(cache), say)
    except BuildError as error:
        return f"the build from Go modules did not work ({error})"
    return None

"""Building the Pulumi CLI from its Go modules, whose versions and hashes are pinned below build/."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from infra.pulumi_cli.locate import BUILD_VERSION, DYNAMIC_PROVIDER, LANGUAGE_HOST

SDK = "github.com/pulumi/pulumi/sdk/v3"
ENGINE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
# The last release line whose `sdk` module still holds the Python language host; newer engines work with it, but it does
# not read `runtime.options.virtualenv`, so `tpu-ray env` puts the environment's `bin` first on PATH.
LANGUAGE = f"{SDK}/python/cmd/{LANGUAGE_HOST}"

BUILD_TIMEOUT_S = 3600
PROGRESS_EVERY_S = 15.0


class BuildError(Exception):
    """The build cannot start or failed; the text is one line."""


def build(root: Path, say: Callable[[str], None]) -> None:
    """Fill `root/bin` with `pulumi`, the Python language host and the dynamic provider. About 6 minutes on two cores.

    Raises:
        BuildError: there is no Go, or a step of it failed.
    """
    go = shutil.which("go")
    if go is None:
        raise BuildError("there is no `go` on PATH")
    say(f"building the Pulumi CLI {BUILD_VERSION} from Go modules: about 6 minutes on two cores, once")
    work = root.with_name(f"{root.name}.part{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    try:
        bin_dir = work / "bin"
        bin_dir.mkdir(parents=True)
        engine, language = copy_module(work, "engine"), copy_module(work, "language")
        version_flag = f"-X {SDK}/go/common/version.Version=v{BUILD_VERSION}"
        run_go(
            [go, "build", "-v", "-ldflags", f"-s -w {version_flag}", "-o", str(bin_dir / "pulumi"), ENGINE],
            engine,
            "engine",
            say,
        )
        run_go(
            [go, "build", "-v", "-ldflags", "-s -w", "-o", str(bin_dir / LANGUAGE_HOST), LANGUAGE],
            language,
            "language host",
            say,
        )
        sdk = Path(run_go([go, "list", "-m", "-f", "{{.Dir}}", SDK], engine, "sdk folder", say).strip())
        scripts = (f"python/dist/{DYNAMIC_PROVIDER}", f"python/cmd/{LANGUAGE_HOST}-exec")
        for script in scripts:
            target = bin_dir / Path(script).name
            shutil.copyfile(sdk / script, target)
            target.chmod(0o755)
        for module in (engine, language):
            shutil.rmtree(module)
        shutil.rmtree(root, ignore_errors=True)
        work.rename(root)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def copy_module(work: Path, name: str) -> Path:
    """A writable copy of a pinned module; Go wants to build inside one."""
    target = work / name
    target.mkdir()
    pinned = files("infra.pulumi_cli") / "build" / name
    for file in ("go.mod", "go.sum"):
        (target / file).write_bytes((pinned / file).read_bytes())
    return target


def run_go(command: list[str], cwd: Path, what: str, say: Callable[[str], None]) -> str:
    """Run one go command, saying every while how many packages are compiled. Returns its standard output."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0", "GOWORK": "off"}
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lines: list[str] = []
    assert process.stderr is not None

    def collect() -> None:
        for line in process.stderr or ():
            lines.append(line.rstrip())

    reader = threading.Thread(target=collect, daemon=True)
    reader.start()
    started = time.monotonic()
    while True:
        try:
            process.wait(timeout=PROGRESS_EVERY_S)
            break
        except subprocess.TimeoutExpired:
            spent = time.monotonic() - started
            say(f"  {what}: {len(lines)} packages, {spent:.0f} s")
            if spent > BUILD_TIMEOUT_S:
                process.kill()
                process.wait()
                raise BuildError(f"{what}: not done after {BUILD_TIMEOUT_S} s") from None
    reader.join()
    output = process.stdout.read() if process.stdout else ""
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    if process.returncode != 0:
        raise BuildError(f"{what}: {lines[-1] if lines else f'go ended with {process.returncode}'}")
    return output

"""Where a usable Pulumi CLI is on this machine."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MINIMUM_VERSION = (3, 272, 0)
"""The oldest CLI that is used: the version of the oldest Pulumi SDK that `pyproject.toml` allows."""

BUILD_VERSION = "3.274.1"
"""The version that is installed or built where there is none; pinned in build/engine/go.mod."""

DYNAMIC_PROVIDER = "pulumi-resource-pulumi-python"
"""Starts Python dynamic resources; official installs carry it beside `pulumi`."""

LANGUAGE_HOST = "pulumi-language-python"
"""Runs Python programs for `pulumi up`. The Automation API does without it."""


class CliNotFound(Exception):
    """No Pulumi CLI could be found or made. The text says what was tried and what to do."""


@dataclass(frozen=True)
class PulumiCli:
    """One usable CLI: `bin_dir` holds `pulumi`, and goes first on the PATH of what runs it."""

    bin_dir: Path
    version: str
    source: str

    @property
    def runs_programs(self) -> bool:
        """Whether plain `pulumi up` works with it too (it does in every official install)."""
        return shutil.which(LANGUAGE_HOST, path=f"{self.bin_dir}{os.pathsep}{os.environ.get('PATH', '')}") is not None


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Folder for what can be made again: `$TPU_RAY_CACHE`, else `$XDG_CACHE_HOME/tpu-ray`, else `~/.cache/tpu-ray`."""
    if chosen := environ.get("TPU_RAY_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "tpu-ray"


def installed_root(cache: Path) -> Path:
    """Where the official installer puts its CLI."""
    return cache / f"pulumi-{BUILD_VERSION}-installed"


def built_root(cache: Path) -> Path:
    """Where the CLI that is built from Go modules goes."""
    return cache / f"pulumi-{BUILD_VERSION}-built"


def parse_version(text: str) -> tuple[int, int, int] | None:
    """`v3.274.1-dev+x` is (3, 274, 1); None for what is no version."""
    core = text.strip().removeprefix("v").split("-")[0].split("+")[0].split(".")
    if len(core) != 3 or not all(part.isdigit() for part in core):
        return None
    return int(core[0]), int(core[1]), int(core[2])


def inspect(bin_dir: Path, source: str) -> PulumiCli | str:
    """The CLI in `bin_dir`, or one sentence that says why it cannot be used."""
    binary = bin_dir / "pulumi"
    if not os.access(binary, os.X_OK):
        return f"no pulumi in {bin_dir}"
    try:
        ran = subprocess.run(
            [binary, "version"],
            env={**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{binary} does not run: {error}"
    version = parse_version(ran.stdout)
    if version is None:
        return f"{binary} does not tell its version: {ran.stdout.strip()!r}"
    written = ".".join(map(str, version))
    if version < MINIMUM_VERSION or version[0] != MINIMUM_VERSION[0]:
        wanted = ".".join(map(str, MINIMUM_VERSION))
        return f"{binary} is version {written}; the Pulumi SDK here wants {wanted} or newer (and below 4)"
    if not (bin_dir / DYNAMIC_PROVIDER).exists() and shutil.which(DYNAMIC_PROVIDER) is None:
        return f"{binary} has no {DYNAMIC_PROVIDER} beside it, which dynamic resources need"
    return PulumiCli(bin_dir, written, source)


def candidates(environ: Mapping[str, str], cache: Path) -> list[tuple[Path, str]]:
    """Folders that may hold a CLI, best first: the user's own, then what earlier runs left in the cache."""
    found: list[tuple[Path, str]] = []
    if on_path := shutil.which("pulumi", path=environ.get("PATH", "")):
        # A link (a package manager's) is followed: the plugins lie beside the real file.
        found.append((Path(on_path).resolve().parent, "on PATH"))
    found.append((installed_root(cache) / "bin", "installed by tpu-ray"))
    found.append((built_root(cache) / "bin", "built by tpu-ray"))
    return found


def find_cli(environ: Mapping[str, str] = os.environ) -> tuple[PulumiCli | None, list[str]]:
    """The first usable CLI, and for each candidate that is there but not usable one sentence why."""
    refused: list[str] = []
    for bin_dir, source in candidates(environ, cache_dir(environ)):
        if not (bin_dir / "pulumi").exists():
            continue
        result = inspect(bin_dir, source)
        if isinstance(result, PulumiCli):
            return result, refused
        refused.append(result)
    return None, refused

"""Pulumi's language host for YAML programs, built from its Go module; official installs of the CLI carry it."""

import shutil
from pathlib import Path

from infra.pulumi_cli.gobuild import run_go

VERSION = "1.25.0"
MODULE = "github.com/pulumi/pulumi-yaml"
PINNED = Path(__file__).parent / "build" / "yaml"


def build(folder: Path) -> Path:
    """Folder with `pulumi-language-yaml`, to be put on PATH. Minutes at first, seconds from Go's own cache."""
    go = shutil.which("go")
    assert go, "the YAML host is built from Go modules, and there is no `go` on PATH"
    shutil.copytree(PINNED, folder / "module")
    flags = f"-s -w -X {MODULE}/pkg/version.Version=v{VERSION}"
    target = folder / "bin" / "pulumi-language-yaml"
    command = [go, "build", "-v", "-ldflags", flags, "-o", str(target), f"{MODULE}/cmd/pulumi-language-yaml"]
    run_go(command, folder / "module", "YAML host", print)
    return target.parent

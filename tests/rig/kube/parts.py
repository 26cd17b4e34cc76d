"""The real parts of a Kubernetes control plane, built once from pinned Go modules into tpu-ray's cache.

A part that cannot be had is an error: no test passes without it.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.pulumi_cli.gobuild import run_go
from infra.pulumi_cli.locate import cache_dir

KUBERNETES = "1.34.3"
PROVIDER = "4.34.2"
"""Version of the Pulumi Kubernetes provider; the SDK that is installed is of the same."""
PROVIDER_MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
KUBERAY = ("1.5.1", "1.6.2")
"""What GKE's add-on may bring: the release of its first TPU guides, and the newest that the Go proxy serves."""
KUEUE = "0.17.0"

PINNED = Path(__file__).parent / "build"


def say(line: str) -> None:
    """Progress, for a person who waits for a first build."""
    print(f"rig: {line}", flush=True)


def etcd() -> Path:
    """The etcd server."""
    return _plane() / "etcd"


def kube_apiserver() -> Path:
    """The Kubernetes API server."""
    return _plane() / "kube-apiserver"


def kubernetes_provider() -> Path:
    """Folder with `pulumi-resource-kubernetes`, to be put on PATH."""
    return _built(f"provider-{PROVIDER}", _build_provider)


def kuberay_crds(version: str) -> list[Path]:
    """KubeRay's custom resource definitions of a release, one file each."""
    found = sorted(
        (_module("github.com/ray-project/kuberay/ray-operator", version) / "config/crd/bases").glob("*.yaml")
    )
    assert found, f"KubeRay {version} has no definitions"
    return found


def kueue_chart() -> Path:
    """Folder of Kueue's Helm chart."""
    return _module("sigs.k8s.io/kueue", KUEUE) / "charts" / "kueue"


def _plane() -> Path:
    return _built(f"plane-{KUBERNETES}", _build_plane)


def _build_plane(work: Path, target: Path) -> None:
    stamp = f"-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"
    for name, package, flags in (
        ("etcd", "go.etcd.io/etcd/server/v3", "-s -w"),
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", f"-s -w {stamp}"),
    ):
        run_go([_go(), "build", "-v", "-ldflags", flags, "-o", str(target / name), package], work, name, say)


def _build_provider(work: Path, target: Path) -> None:
    """The provider's own main embeds generated files that its module lacks; ours embeds those that it has."""
    listed = run_go([_go(), "list", "-m", "-f", "{{.Dir}}", PROVIDER_MODULE], work, "provider", say)
    generated = Path(listed.strip()) / "cmd" / "pulumi-resource-kubernetes"
    schema = json.loads((generated / "schema.json").read_text())
    (work / "schema.json").write_text(json.dumps({**schema, "version": PROVIDER}))
    (work / "terraform-mapping.json").write_bytes((generated / "terraform-mapping.json").read_bytes())
    flags = f"-s -w -X {PROVIDER_MODULE}/pkg/version.Version={PROVIDER}"
    binary = target / "pulumi-resource-kubernetes"
    run_go([_go(), "build", "-v", "-ldflags", flags, "-o", str(binary), "."], work, "kubernetes provider", say)


def _built(name: str, build: Callable[[Path, Path], None]) -> Path:
    """The part's folder in the cache; when it is missing, `build(module, folder to fill)` makes it."""
    root = cache_dir() / "rig"
    done = root / name
    if done.is_dir():
        return done
    with _only_one(root):
        if done.is_dir():
            return done
        say(f"building {name} from Go modules, once; this takes minutes")
        started, part = time.monotonic(), root / f"{name}.part{os.getpid()}"
        shutil.rmtree(part, ignore_errors=True)
        try:
            shutil.copytree(PINNED / name.partition("-")[0], part / "module")
            (part / "bin").mkdir()
            build(part / "module", part / "bin")
            (part / "bin").rename(done)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        say(f"{name} is built in {time.monotonic() - started:.0f} s")
    return done


def _module(path: str, version: str) -> Path:
    """Folder of a module's files, downloaded when they are missing; Go checks them against its checksum database."""
    folder = cache_dir() / "rig"
    folder.mkdir(parents=True, exist_ok=True)
    told = run_go([_go(), "mod", "download", "-json", f"{path}@v{version}"], folder, path, say)
    return Path(json.loads(told)["Dir"])


def _go() -> str:
    found = shutil.which("go")
    assert found, "the test rig is built from Go modules, and there is no `go` on PATH"
    return found


@contextmanager
def _only_one(root: Path) -> Iterator[None]:
    """Two test runs at once do not build one part twice."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""The real parts of a Kubernetes control plane, built once from pinned Go modules into tpu-ray's cache.

A part that cannot be had is an error: no test passes without it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.pulumi_cli.gobuild import BuildError, run_go
from infra.pulumi_cli.locate import cache_dir

KUBERNETES = "1.34.3"
PROVIDER = "4.34.2"
"""Version of the Pulumi Kubernetes provider; the SDK that is installed is of the same."""
PROVIDER_MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
KUBERAY = ("1.5.1", "1.6.2")
"""What GKE's add-on may bring: the release of its first TPU guides, and the newest that the Go proxy serves."""
KUEUE = "0.17.0"
COREDNS = "1.12.4"

PINNED = Path(__file__).parent / "build"
"""One Go module for each part that is built, with the sums of everything that goes into it."""
KUBERAY_MODULE, KUEUE_MODULE = "github.com/ray-project/kuberay/ray-operator", "sigs.k8s.io/kueue"
SUMS = {
    (KUBERAY_MODULE, "1.5.1"): "h1:7FJYmB8oM+cnjv1VYCj/TfzRZG4XHvvt5Ayn5pZ5A1c=",
    (KUBERAY_MODULE, "1.6.2"): "h1:XUckRswLMyk71D00L62d2Vanh0fVkNqu56+IF/rr+O0=",
    (KUEUE_MODULE, KUEUE): "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=",
}
"""Of the modules that are only downloaded, as a go.sum has them."""


def say(line: str) -> None:
    """Progress, for a person who waits for a first build."""
    print(f"rig: {line}", flush=True)


def etcd() -> Path:
    """The etcd server."""
    return _plane() / "etcd"


def kube_apiserver() -> Path:
    """The Kubernetes API server."""
    return _plane() / "kube-apiserver"


def kube_controller_manager() -> Path:
    """Kubernetes' own controllers."""
    return _plane() / "kube-controller-manager"


def kube_scheduler() -> Path:
    """What finds a node for a pod."""
    return _node() / "kube-scheduler"


def kube_proxy() -> Path:
    """What makes a Service's address lead to its pods."""
    return _node() / "kube-proxy"


def kubelet() -> Path:
    """The kubelet, of a machine whose size it is told: `build/node/kubelet/main.go`."""
    return _node() / "kubelet"


def pause() -> Path:
    """What holds a pod's namespaces open: `build/node/pause/main.go`."""
    return _node() / "pause"


def coredns() -> Path:
    """What answers for the names of Services and pods."""
    return _built("names", COREDNS, _build_names) / "coredns"


def kuberay_operator(version: str) -> Path:
    """KubeRay's operator of a release."""
    return _built(f"kuberay-{version}", version, _build_operator) / "ray-operator"


def kubernetes_provider() -> Path:
    """Folder with `pulumi-resource-kubernetes`, to be put on PATH."""
    return _built("provider", PROVIDER, _build_provider)


def kuberay_crds(version: str) -> list[Path]:
    """KubeRay's custom resource definitions of a release, one file each."""
    found = sorted((_module(KUBERAY_MODULE, version) / "config/crd/bases").glob("*.yaml"))
    assert found, f"KubeRay {version} has no definitions"
    return found


def kueue_chart() -> Path:
    """Folder of Kueue's Helm chart."""
    return _module(KUEUE_MODULE, KUEUE) / "charts" / "kueue"


def _plane() -> Path:
    return _built("plane", KUBERNETES, _build_plane)


def _build_plane(work: Path, target: Path) -> None:
    stamp = f"-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"
    for name, package, flags in (
        ("etcd", "go.etcd.io/etcd/server/v3", "-s -w"),
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", f"-s -w {stamp}"),
        ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", f"-s -w {stamp}"),
    ):
        _build(name, package, flags, work, target)


def _node() -> Path:
    return _built("node", KUBERNETES, _build_node)


def _build_node(work: Path, target: Path) -> None:
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"
    for name in ("kube-scheduler", "kube-proxy"):
        _build(name, f"k8s.io/kubernetes/cmd/{name}", flags, work, target)
    _build("kubelet", "./kubelet", flags, work, target)
    # It runs where there are no libraries.
    _build("pause", "./pause", "-s -w -extldflags -static", work, target)


def _build_names(work: Path, target: Path) -> None:
    _build("coredns", "github.com/coredns/coredns", "-s -w", work, target)


def _build_operator(work: Path, target: Path) -> None:
    _build("ray-operator", KUBERAY_MODULE, "-s -w", work, target)


def _build_provider(work: Path, target: Path) -> None:
    """The provider's own main embeds generated files that its module lacks; ours embeds those that it has."""
    # Not `go list -m`: of a module that nothing has downloaded yet it names no folder.
    told = json.loads(run_go([_go(), "mod", "download", "-json", PROVIDER_MODULE], work, "provider", say))
    generated = Path(told["Dir"]) / "cmd" / "pulumi-resource-kubernetes"
    schema = json.loads((generated / "schema.json").read_text())
    (work / "schema.json").write_text(json.dumps({**schema, "version": PROVIDER}))
    (work / "terraform-mapping.json").write_bytes((generated / "terraform-mapping.json").read_bytes())
    flags = f"-s -w -X {PROVIDER_MODULE}/pkg/version.Version={PROVIDER}"
    _build("pulumi-resource-kubernetes", ".", flags, work, target)


def _build(name: str, package: str, flags: str, work: Path, target: Path) -> None:
    """One binary; `-mod=readonly` refuses what the module's go.sum does not pin."""
    command = [_go(), "build", "-mod=readonly", "-v", "-ldflags", flags, "-o", str(target / name), package]
    run_go(command, work, name, say)


def _built(part: str, version: str, build: Callable[[Path, Path], None]) -> Path:
    """The part's folder in the cache; when it is missing, `build(module, folder to fill)` makes it.

    The folder is named by what goes into the part, so that an edit of its module builds it anew.
    """
    root, module = cache_dir() / "rig", PINNED / part
    name = f"{part}-{version}-{_content(module)}"
    done = root / name
    if done.is_dir():
        return done
    with _only_one(root):
        if done.is_dir():
            return done
        say(f"building {name} from Go modules, once; this takes minutes")
        started, begun = time.monotonic(), root / f"{name}.part{os.getpid()}"
        shutil.rmtree(begun, ignore_errors=True)
        try:
            shutil.copytree(module, begun / "module")
            (begun / "bin").mkdir()
            build(begun / "module", begun / "bin")
            (begun / "bin").rename(done)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
        say(f"{name} is built in {time.monotonic() - started:.0f} s")
    return done


def _content(module: Path) -> str:
    """Short hash of the names and contents of a module's files."""
    found = hashlib.sha256()
    for file in sorted(file for file in module.rglob("*") if file.is_file()):
        found.update(f"{file.relative_to(module)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()[:8]


def _module(path: str, version: str) -> Path:
    """Folder of a module's files, downloaded when they are missing.

    Raises:
        BuildError: it cannot be had, or is not the one that is pinned.
    """
    folder = cache_dir() / "rig"
    folder.mkdir(parents=True, exist_ok=True)
    told = json.loads(run_go([_go(), "mod", "download", "-json", f"{path}@v{version}"], folder, path, say))
    if told["Sum"] != SUMS[path, version]:
        raise BuildError(f"{path} v{version} has the sum {told['Sum']}, and {SUMS[path, version]} is pinned")
    return Path(told["Dir"])


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

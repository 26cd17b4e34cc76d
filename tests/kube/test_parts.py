"""The rig's parts are the pinned ones, and are built anew when what goes into them changes."""

import json
import shutil
from pathlib import Path

import pytest

from infra.pulumi_cli.gobuild import BuildError
from tests.rig.kube import parts

# `go build ... -o FILE PACKAGE` writes the package's name; `go mod download -json MODULE` answers as Go does.
GO = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
if [ "$1" = build ]; then
    for last; do :; done
    while [ "$1" != -o ]; do shift; done
    echo "$last" > "$2"
else
    cat "$(dirname "$0")/told"
fi
"""
OTHER = "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


class FakeGo:
    """A `go` that notes what it is asked for."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._asked, self._told = folder / "asked", folder / "told"
        (folder / "go").write_text(GO)
        (folder / "go").chmod(0o755)

    def tells(self, module: Path, total: str) -> None:
        """Where the module that is asked for next lies, and its sum."""
        self._told.write_text(json.dumps({"Dir": str(module), "Sum": total}))

    @property
    def asked(self) -> list[str]:
        """Its command lines."""
        return self._asked.read_text().splitlines() if self._asked.exists() else []


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    """The only `go`, an empty cache, and pins that a test may edit in the folder `pinned`."""
    made = FakeGo(tmp_path / "tools")
    shutil.copytree(parts.PINNED, tmp_path / "pinned")
    monkeypatch.setattr(parts, "PINNED", tmp_path / "pinned")
    monkeypatch.setenv("TPU_RAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:/usr/bin:/bin")
    return made


def test_a_part_is_built_once(go: FakeGo) -> None:
    assert parts.kube_apiserver().read_text() == "k8s.io/kubernetes/cmd/kube-apiserver\n"
    built = go.asked
    assert len(built) == 3
    assert all("-mod=readonly" in command for command in built)
    assert parts.etcd().read_text() == "go.etcd.io/etcd/server/v3\n"
    assert parts.kube_controller_manager().read_text() == "k8s.io/kubernetes/cmd/kube-controller-manager\n"
    assert go.asked == built


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go"])
def test_an_edit_of_what_goes_into_a_part_builds_it_anew(go: FakeGo, tmp_path: Path, file: str) -> None:
    before = parts.etcd()
    with (tmp_path / "pinned" / "plane" / file).open("a") as pinned:
        pinned.write("// edited\n")
    after = parts.etcd()
    assert after != before
    assert before.exists()
    assert len(go.asked) == 6


def test_an_edit_of_another_part_builds_nothing(go: FakeGo, tmp_path: Path) -> None:
    before = parts.etcd()
    (tmp_path / "pinned" / "provider" / "go.mod").write_text("module edited\n")
    assert parts.etcd() == before
    assert len(go.asked) == 3


def test_a_build_that_fails_leaves_nothing(go: FakeGo, tmp_path: Path) -> None:
    (tmp_path / "tools" / "go").write_text("#!/bin/sh\necho 'missing go.sum entry' >&2\nexit 1\n")
    with pytest.raises(BuildError, match=r"etcd: missing go\.sum entry"):
        parts.etcd()
    assert [path.name for path in (tmp_path / "cache" / "rig").iterdir()] == ["build.lock"]


# As the Go checksum database has them: https://sum.golang.org/lookup/<module>@v<version>
@pytest.mark.parametrize(
    ("version", "total"),
    [
        ("1.5.1", "h1:7FJYmB8oM+cnjv1VYCj/TfzRZG4XHvvt5Ayn5pZ5A1c="),
        ("1.6.2", "h1:XUckRswLMyk71D00L62d2Vanh0fVkNqu56+IF/rr+O0="),
    ],
)
def test_kuberay_is_the_pinned_one(go: FakeGo, tmp_path: Path, version: str, total: str) -> None:
    definition = tmp_path / "module" / "config" / "crd" / "bases" / "ray.io_rayjobs.yaml"
    definition.parent.mkdir(parents=True)
    definition.touch()
    go.tells(tmp_path / "module", total)
    assert parts.kuberay_crds(version) == [definition]
    assert go.asked == [f"mod download -json github.com/ray-project/kuberay/ray-operator@v{version}"]
    go.tells(tmp_path / "module", OTHER)
    with pytest.raises(BuildError) as raised:
        parts.kuberay_crds(version)
    assert str(raised.value) == (
        f"github.com/ray-project/kuberay/ray-operator v{version} has the sum {OTHER}, and {total} is pinned"
    )


def test_kueue_is_the_pinned_one(go: FakeGo, tmp_path: Path) -> None:
    go.tells(tmp_path, "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=")
    assert parts.kueue_chart() == tmp_path / "charts" / "kueue"
    go.tells(tmp_path, OTHER)
    with pytest.raises(BuildError, match=r"/kueue v0\.17\.0 has the sum h1:AAAA.*, and h1:7hzb38M4.* pinned"):
        parts.kueue_chart()


def test_without_go_the_rig_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPU_RAY_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssertionError, match="there is no `go` on PATH"):
        parts.etcd()

"""Finding the Pulumi CLI, and the ways to get one where there is none."""

import os
import stat
import sys
import time
from pathlib import Path

import psutil
import pytest

from infra.pulumi_cli import obtain
from infra.pulumi_cli.locate import (
    DYNAMIC_PROVIDER,
    CliNotFound,
    PulumiCli,
    built_root,
    cache_dir,
    find_cli,
    inspect,
    installed_root,
    parse_version,
)


def fake_cli(bin_dir: Path, version: str, provider: bool = True) -> Path:
    """A `pulumi` that knows its version and nothing else."""
    bin_dir.mkdir(parents=True, exist_ok=True)
    script(bin_dir / "pulumi", f"echo {version}")
    if provider:
        script(bin_dir / DYNAMIC_PROVIDER, "exit 1")
    return bin_dir


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a shell and an empty cache: no pulumi, no go. Returns the cache."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "env", "sleep"):
        (tools / name).symlink_to(next(p for p in (Path("/bin", name), Path("/usr/bin", name)) if p.exists()))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("TPU_RAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v3.274.1\n", (3, 274, 1)),
        ("3.300.0-alpha.1+dirty", (3, 300, 0)),
        ("v4.0.0", (4, 0, 0)),
        ("", None),
        ("v3.2", None),
        ("warning: x", None),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("version", "provider", "word"),
    [
        ("v3.100.0", True, "3.272.0 or newer"),
        ("v4.0.0", True, "below 4"),
        ("oops", True, "does not tell its version"),
        ("v3.274.1", False, DYNAMIC_PROVIDER),
    ],
)
def test_a_cli_that_cannot_be_used_is_refused_with_the_reason(
    bare: Path, tmp_path: Path, version: str, provider: bool, word: str
) -> None:
    reason = inspect(fake_cli(tmp_path / "bin", version, provider), "on PATH")
    assert isinstance(reason, str)
    assert word in reason


def test_the_cli_on_path_goes_first_and_its_link_is_followed(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cli(built_root(bare) / "bin", "v3.274.1")
    real = fake_cli(tmp_path / "opt", "v3.280.0")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "pulumi").symlink_to(real / "pulumi")
    monkeypatch.setenv("PATH", f"{tmp_path / 'links'}{os.pathsep}{os.environ['PATH']}")
    found, refused = find_cli()
    assert found == PulumiCli(real, "3.280.0", "on PATH")
    assert refused == []


def test_an_old_cli_on_path_gives_way_to_the_cache(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cli(installed_root(bare) / "bin", "v3.274.1")
    monkeypatch.setenv("PATH", f"{fake_cli(tmp_path / 'old', 'v3.0.0')}{os.pathsep}{os.environ['PATH']}")
    found, refused = find_cli()
    assert found is not None
    assert found.source == "installed by tpu-ray"
    assert len(refused) == 1
    assert "3.0.0" in refused[0]


def test_where_no_way_works_every_reason_is_told(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "python", "echo 'no such host' >&2; exit 1")))
    said: list[str] = []
    with pytest.raises(CliNotFound) as raised:
        obtain.obtain_cli(said.append)
    for reason in ("no such host", "there is no `go` on PATH"):
        assert reason in str(raised.value)
        assert any(reason in line for line in said)
    assert sorted(path.name for path in bare.iterdir()) == ["pulumi.lock"]


def test_what_the_installer_leaves_is_used(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The arguments are: -m, the installer's module, the folder, the version.
    prepared = fake_cli(tmp_path / "prepared" / "bin", "v3.274.1").parent
    copy = f'PATH=/bin:/usr/bin cp -r "{prepared}" "$3"'
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "python", copy)))
    cli = obtain.obtain_cli(print)
    assert cli == PulumiCli(installed_root(bare) / "bin", "3.274.1", "installed by tpu-ray")
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "python", "exit 1")))
    assert obtain.obtain_cli(print) == cli


def test_an_installer_that_hangs_is_ended_with_its_children(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "pid"
    hang = f"sleep 600 & echo $! > {pid_file}; wait"
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "python", hang)))
    monkeypatch.setattr(obtain, "INSTALL_TIMEOUT_S", 2)
    bare.mkdir()
    reason = obtain.run_installer(bare, print)
    assert reason is not None
    assert "not done after 2 s" in reason
    child = int(pid_file.read_text())
    deadline = time.monotonic() + 30
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the installer's child still runs"
        time.sleep(0.05)


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path) -> None:
    assert cache_dir({"TPU_RAY_CACHE": str(tmp_path)}) == tmp_path
    assert cache_dir({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "tpu-ray"
    assert cache_dir({}) == Path.home() / ".cache" / "tpu-ray"

"""What is refused before anything starts, each with wanted, found and the next step."""

import json
from pathlib import Path

import pytest

from infra.platforms.errors import PlatformError
from infra.platforms.local import cluster
from infra.platforms.local.folders import Folders
from infra.platforms.local.memory import estimate_gib, require_memory
from infra.platforms.local.ports import is_free, pick, require_free
from infra.platforms.local.spec import ClusterSpec, LocalPool
from infra.platforms.local.state import ClusterState, load, locked, save
from workloads.spec import resolve_slice

SPEC = ClusterSpec("t", 8000, 8265, 16, (LocalPool("a", resolve_slice("v6e", "4x4"), 1),))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TPU_RAY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_picked_ports_are_different_and_free() -> None:
    ports = pick(50)
    assert len(set(ports)) == 50
    assert all(is_free(port) for port in ports)


def test_a_taken_port_is_named_with_its_key_and_its_process(taken: int) -> None:
    with pytest.raises(PlatformError) as error:
        require_free(taken, "tpu-ray:platform.http_port")
    assert error.value.key == "tpu-ray:platform.http_port"
    assert f"port {taken} is taken" in str(error.value)
    assert "listens there" in error.value.found
    assert "set `tpu-ray:platform.http_port` to a free port" in error.value.next_step


def test_a_stack_that_may_not_take_what_it_needs_is_refused() -> None:
    with pytest.raises(PlatformError) as error:
        require_memory(ClusterSpec("t", 8000, 8265, 2, SPEC.pools), available_gib=64)
    assert error.value.key == "tpu-ray:platform.memory_gib"
    assert "4 emulated hosts" in error.value.wanted


def test_a_stack_that_does_not_fit_the_machine_is_refused() -> None:
    with pytest.raises(PlatformError) as error:
        require_memory(SPEC, available_gib=1.5)
    assert error.value.found == "1.5 GiB available"


def test_the_default_stack_is_estimated_below_16_gib() -> None:
    one = LocalPool("single", resolve_slice("v6e", "1x1"), 1)
    assert 4 < estimate_gib(ClusterSpec("t", 1, 2, 16, (one, *SPEC.pools))) < 16


def test_the_estimate_suggests_a_limit_that_is_accepted() -> None:
    tight = ClusterSpec("t", 8000, 8265, int(estimate_gib(SPEC)) + 1, SPEC.pools)
    require_memory(tight, available_gib=64)


def test_a_stack_of_another_checkout_is_left_alone() -> None:
    folders = Folders.of("t")
    save(folders, ClusterState("/somewhere/else", "s", SPEC, "127.64.0.1:1", ()))
    for action in (lambda: load(folders), lambda: cluster.stop("t", print), lambda: cluster.start(SPEC, print)):
        with pytest.raises(PlatformError) as error:
            action()
        assert "/somewhere/else" in error.value.found
        assert "another stack name" in error.value.next_step
    assert folders.state_file.exists()


def test_a_state_that_cannot_be_read_says_where_it_is() -> None:
    folders = Folders.of("t")
    folders.root.mkdir(parents=True)
    folders.state_file.write_text(json.dumps({"owner": "x"}))
    with pytest.raises(PlatformError) as error:
        load(folders)
    assert str(folders.state_file) in error.value.found


def test_without_ray_the_next_step_is_its_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlatformError) as error:
        cluster.start(SPEC, print)
    assert "make setup" in error.value.next_step


def test_a_refused_start_leaves_no_file(home: Path, taken: int) -> None:
    with pytest.raises(PlatformError):
        cluster.start(ClusterSpec("t", taken, 8265, 16, SPEC.pools), print)
    assert not home.exists()


def test_two_commands_do_not_change_one_stack_at_once() -> None:
    folders = Folders.of("t")
    with locked(folders), pytest.raises(PlatformError) as error, locked(folders, timeout_s=0.3):
        pass
    assert "another command" in error.value.problem


def test_no_cluster_is_nothing_to_stop(home: Path) -> None:
    assert cluster.stop("t", print) is False
    assert not home.exists()

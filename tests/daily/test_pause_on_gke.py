"""A service of a GKE stack to zero slices and back, on the real engine and a real API server; logins come from the
stack's state."""

from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.rig.gke import GkeCheckout
from tests.rig.kube.kuberay import RAY, operated

pytestmark = [pytest.mark.rig, pytest.mark.filterwarnings("ignore:gcp\\.:DeprecationWarning")]


def test_a_paused_service_has_no_pods_until_it_is_resumed(tmp_path: Path) -> None:
    with operated(tmp_path / "plane") as plane:
        stack = GkeCheckout(tmp_path, "dev", plane)
        stack.environment["PYTHONPATH"] = str(ROOT)
        assert "it was never brought up" in stack.run("tpu-ray status -s dev", expect=3)
        assert stack.operate("up").ok
        before = stack.tpu_ray("status")
        assert [(pool["name"], pool["slices_there"]) for pool in before["pools"]] == [("chat", 1), ("train", 0)]
        (chat,) = before["services"]
        assert (chat["state"], before["jobs"][0]["state"]) == ("ready", "pending")
        text = stack.stack_file.read_text()
        # Another edit of the file is not brought up by the way.
        stack.config["tpu-ray:pools"][1]["slices"] = {"min": 0, "max": 2}
        stack.write()

        told = stack.run("tpu-ray pause chat -s dev")
        assert "service chat is paused; `tpu-ray resume chat -s dev` brings it back" in told
        assert "pool chat keeps 1 slice, free now and billed all the same" in told
        assert plane.every("/api/v1/namespaces/tpu-ray/pods?labelSelector=tpu-ray/service=chat") == []
        assert plane.every(f"{RAY}/namespaces/tpu-ray/rayservices") == []
        assert stack.tpu_ray("status")["services"][0]["state"] == "paused"
        steps = {step["resource"] for step in stack.tpu_ray("preview")["steps"] if step["op"] not in ("same", "read")}
        assert "NodePool train-1" in steps
        assert not {name for name in steps if name.endswith("chat")}, steps

        assert stack.tpu_ray("up")["ok"]
        assert stack.tpu_ray("status")["services"][0]["state"] == "paused", "`up` does not bring it back"
        assert "answers: http://chat-serve-svc.tpu-ray.svc" in stack.run("tpu-ray resume chat -s dev")
        assert stack.tpu_ray("status")["services"][0] == chat, "at the same URL"
        assert stack.tpu_ray("preview --expect-no-changes")["ok"]
        assert stack.stack_file.read_text() == text.replace("max: 1\n    capacity: spot", "max: 2\n    capacity: spot")

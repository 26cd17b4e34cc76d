"""One machine of the cluster: namespaces of its own, in which containerd and the kubelet run.

What makes it a machine is its process namespace: when that ends, all that runs on it is gone at once, as when the
power is cut. Its disk is a folder.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.rig.kube.control_plane import END_S, Server
from tests.rig.kube.parts import kubelet
from tests.rig.nodes import machine_image
from tests.rig.nodes.bind_mounts import BindMounts
from tests.rig.nodes.bucket_driver import BucketDriver, offered
from tests.rig.nodes.chips import write_chips
from tests.rig.nodes.device_plugin import DevicePlugin, registered
from tests.rig.nodes.network import DOMAIN, GATEWAY, drop_address, write_cni
from workloads.spec import Slice

CGROUPS = Path("/sys/fs/cgroup")
INIT = "mount --make-rprivate /; echo up; while sleep 3600; do :; done"
"""The first process: it takes in those whose parents are gone, and waits."""
START_S = 120.0
PERIOD_S = 0.05


class MachineError(Exception):
    """A machine did not come up; with the end of the log of what failed."""


@dataclass(frozen=True)
class Size:
    """What the machine says it has, and what of it is kept from pods."""

    cpus: int
    memory_gib: int
    kept_cpus: int
    kept_gib: int
    pods: int


class Inside(Server):
    """A process of a machine. The one that is known here only entered it and waits for the one that does the work."""

    def end(self) -> None:
        """End it, and wait until it is gone."""
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for child in children(self.process.pid):
                os.kill(child, sent)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(END_S)
                return


def children(process: int) -> list[int]:
    """Those of a process that has one thread and may be gone. proc_pid_task(5)"""
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except FileNotFoundError:
        return []


@dataclass
class Machine:
    """A machine that runs.

    Attributes:
        name: of its node.
        folder: its disk.
        address: on the bridge.
        group: its cgroup, below that of the cluster.
    """

    name: str
    folder: Path
    address: str
    group: str
    size: Size
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, str]]
    provider_id: str
    login: Path
    images: Sequence[str]
    shape: Slice | None
    buckets: Path
    holder: subprocess.Popen[bytes] | None = None
    init: int = 0
    off: bool = False
    servers: dict[str, Server] = field(default_factory=dict)
    plugins: ExitStack = field(default_factory=ExitStack)

    @property
    def kubelet_folder(self) -> Path:
        return self.folder / "kubelet"

    @property
    def socket(self) -> Path:
        return self.folder / "containerd.sock"

    def boot(self) -> None:
        """Start it; its node appears in the API server by itself.

        Raises:
            MachineError: containerd did not come up.
        """
        for folder in ("kubelet/device-plugins", "kubelet/plugins_registry", "logs", "cni", "containerd"):
            (self.folder / folder).mkdir(parents=True, exist_ok=True)
        self._make_groups()
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", INIT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self.holder.stdout
        with self.holder.stdout as told:
            told.readline()
        (self.init,) = children(self.holder.pid)
        plugins = "/var/lib/kubelet/device-plugins"
        self.inside(["mkdir", "-p", plugins])
        self.inside(["mount", "--bind", str(self.kubelet_folder / "device-plugins"), plugins])
        self._start_containerd()
        driver = BucketDriver(self.name, self.buckets, BindMounts(self.init))
        self.plugins.enter_context(offered(driver, self.kubelet_folder))
        if self.shape is not None:
            chips = write_chips(self.folder / "chips", self.shape)
            self.plugins.enter_context(registered(DevicePlugin(self.shape, self.address, [chips]), self.kubelet_folder))
        self.start_kubelet()

    def inside(self, command: Sequence[str]) -> str:
        """Run a command on the machine; its output.

        Raises:
            MachineError: it failed.
        """
        done = subprocess.run(self._entered(command), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise MachineError(f"{self.name}: {' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def _entered(self, command: Sequence[str]) -> list[str]:
        return ["nsenter", "--mount", "--pid", f"--target={self.init}", "--", *command]

    def _make_groups(self) -> None:
        for controller in CGROUPS.iterdir():
            if (controller / "cgroup.procs").exists() and not controller.is_symlink():
                folder = controller / self.group
                folder.mkdir(parents=True, exist_ok=True)
                # A new group of processors is empty, and takes no process until it is told which ones it may have.
                for file in ("cpuset.cpus", "cpuset.mems"):
                    for above in reversed([folder, *folder.parents][: folder.parts.index(controller.name) + 1]):
                        if (above / file).exists() and not (above / file).read_text().strip():
                            (above / file).write_text((above.parent / file).read_text())

    def _start_containerd(self) -> None:
        base = json.loads(self.inside(["ctr", "oci", "spec"]))
        base["mounts"] += machine_image.mounts()
        # KubeRay raises the limit of open files to 65,536; here it can be no higher than that of this process.
        _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
        base["process"]["rlimits"] = [{"type": "RLIMIT_NOFILE", "hard": files, "soft": files}]
        (self.folder / "base.json").write_text(json.dumps(base))
        write_cni(self.folder / "cni", self.folder.parent / "leases")
        config = self.folder / "containerd.toml"
        config.write_text(
            f"""version = 2
root = "{self.folder}/containerd"
state = "{self.folder}/state"
[grpc]
  address = "{self.socket}"
[ttrpc]
  address = "{self.socket}.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
  # No process is made less likely to be killed than this one is.
  restrict_oom_score_adj = true
  sandbox_image = "{machine_image.PAUSE}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{self.folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{self.folder}/base.json"
"""
        )
        server = self._start("containerd", ["containerd", "--config", str(config)])
        image = self.folder / "image.tar"
        machine_image.write_image(image, [machine_image.PAUSE, *self.images])
        until = time.monotonic() + START_S
        while True:
            try:
                self._ctr("version")
                break
            except MachineError as error:
                if server.dead or time.monotonic() > until:
                    raise MachineError(f"{self.name}: {server.dead or error}") from None
                time.sleep(PERIOD_S)
        self._ctr("images", "import", str(image))

    def _ctr(self, *arguments: str) -> str:
        return self.inside(["ctr", f"--address={self.socket}", "--namespace=k8s.io", *arguments])

    def start_kubelet(self) -> None:
        """Start the kubelet; also again, after it was stopped."""
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps(self._kubelet_config()))
        labels = ",".join(f"{key}={value}" for key, value in self.labels.items())
        self._start(
            "kubelet",
            [
                str(kubelet()),
                f"--config={config}",
                f"--kubeconfig={self.login}",
                f"--hostname-override={self.name}",
                f"--node-ip={self.address}",
                f"--node-labels={labels}",
                f"--root-dir={self.kubelet_folder}",
                f"--cpus={self.size.cpus}",
                f"--memory-gib={self.size.memory_gib}",
            ],
        )

    def stop_kubelet(self) -> None:
        """End the kubelet alone: its pods run on, and nobody tells of them."""
        self.servers.pop("kubelet").end()

    def _start(self, name: str, command: Sequence[str]) -> Server:
        log = self.folder / "logs" / f"{name}.log"
        with log.open("ab") as file:
            process = subprocess.Popen(self._entered(command), stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        self.servers[name] = Inside(name, process, log)
        return self.servers[name]

    def _kubelet_config(self) -> dict[str, Any]:
        """https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/"""
        nothing = {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"}
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "healthzPort": 0,
            "readOnlyPort": 0,
            # Nobody is in this network but the cluster itself.
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.group}",
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            # All machines share one disk and one memory: how full these are says nothing of one of them.
            "evictionHard": nothing,
            "imageGCHighThresholdPercent": 100,
            "systemReserved": {"cpu": str(self.size.kept_cpus), "memory": f"{self.size.kept_gib}Gi"},
            "maxPods": self.size.pods,
            "clusterDNS": [GATEWAY],
            "clusterDomain": DOMAIN,
            "resolvConf": "",
            "providerID": self.provider_id,
            "registerWithTaints": list(self.taints),
            "podLogsDir": str(self.folder / "logs" / "pods"),
            "volumePluginDir": str(self.folder / "volume-plugins"),
            "nodeStatusUpdateFrequency": "5s",
            "serializeImagePulls": False,
        }

    @property
    def on(self) -> bool:
        """Whether it runs, or is on its way."""
        return not self.off and (self.holder is None or self.holder.poll() is None)

    def shut_down(self, grace_s: float) -> None:
        """End what runs on it, with so long for each container, then switch it off."""
        self.stop_kubelet()
        until = time.monotonic() + grace_s
        tasks = self._ctr("tasks", "list", "--quiet").split()
        for task in tasks:
            with suppress(MachineError):  # It has ended meanwhile.
                self._ctr("tasks", "kill", "--signal=SIGTERM", task)
        while tasks and time.monotonic() < until:
            left = [line for line in self._ctr("tasks", "list").splitlines() if "RUNNING" in line]
            # The one that holds a pod's network open ends with the others, or never ran beside one.
            if not left:
                break
            time.sleep(PERIOD_S)
        self.cut_power()

    def cut_power(self) -> None:
        """End it without a word to anybody: its node stays until someone misses it."""
        if self.off:
            return
        self.off = True
        if self.holder:
            os.kill(self.init, signal.SIGKILL)
            self.holder.wait()
        # Afterwards: what was mounted on it is gone with it.
        self.plugins.close()
        for server in self.servers.values():
            server.process.wait()
        self.servers.clear()
        drop_address(self.address)

    def scrap(self) -> None:
        """End it and take all that it left away."""
        self.cut_power()
        remove_group(self.group)
        shutil.rmtree(self.folder)


def remove_group(group: str) -> None:
    """Take a cgroup away from every controller that has it; nothing runs in it."""
    for controller in CGROUPS.iterdir():
        top = controller / group
        if top.is_dir() and not controller.is_symlink():
            for folder, _, _ in os.walk(top, topdown=False):
                Path(folder).rmdir()

"""Build everything that the rig needs: `python -m tests.rig.kube`; with `cluster`, also what runs pods."""

import sys

from tests.rig.kube import parts

found = [
    parts.etcd(),
    parts.kube_apiserver(),
    parts.kube_controller_manager(),
    parts.kubernetes_provider(),
    parts.kueue_chart(),
]
if sys.argv[1:] == ["cluster"]:
    found += [parts.kube_scheduler(), parts.kube_proxy(), parts.kubelet(), parts.pause(), parts.coredns()]
    found += [parts.kuberay_operator(version) for version in parts.KUBERAY]
for part in found:
    parts.say(f"{part.name} is there")
for version in parts.KUBERAY:
    parts.say(f"KubeRay {version}: {len(parts.kuberay_crds(version))} definitions")

"""Build everything that the rig needs: `python -m tests.rig.kube`."""

from tests.rig.kube import parts

for part in (
    parts.etcd(),
    parts.kube_apiserver(),
    parts.kube_controller_manager(),
    parts.kubernetes_provider(),
    parts.kueue_chart(),
):
    parts.say(f"{part.name} is there")
for version in parts.KUBERAY:
    parts.say(f"KubeRay {version}: {len(parts.kuberay_crds(version))} definitions")

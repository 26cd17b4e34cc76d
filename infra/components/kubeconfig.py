"""How to log in to a GKE cluster: with the exec plugin, so that a wait of hours outlives a token."""

import json

PLUGIN = "gke-gcloud-auth-plugin"
"""https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl#install_plugin"""


def kubeconfig(name: str, endpoint: str, ca_certificate: str) -> str:
    """A kubeconfig as JSON. `endpoint` is the control plane's address, `ca_certificate` base64 as GKE gives it."""
    login = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": PLUGIN,
        "installHint": f"Install {PLUGIN}: gcloud components install {PLUGIN}",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {"server": f"https://{endpoint}", "certificate-authority-data": ca_certificate},
            }
        ],
        "users": [{"name": name, "user": {"exec": login}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(config)

"""The providers of a GKE stack, and what things are called at Google."""

import hashlib

import pulumi
import pulumi_gcp as gcp
import pulumi_kubernetes as k8s
from pulumi.runtime.config import CONFIG, is_config_secret

from infra.stack import GkePlatform

SECRETS = ("credentials", "accessToken")
"""Settings of the provider that nobody shall read in a state."""


def google_provider(platform: GkePlatform) -> gcp.Provider:
    """Google's provider for the platform's project. What the stack says below `gcp:` is handed on as it is."""
    config = pulumi.Config("gcp")
    keys = [full.removeprefix("gcp:") for full in CONFIG.get() if full.startswith("gcp:")]
    given = {
        _snake(key): config.get_secret(key) if key in SECRETS or is_config_secret(f"gcp:{key}") else config.get(key)
        for key in keys
    }
    return gcp.Provider(
        "google", **{**given, "project": platform.project, "region": platform.region, "zone": platform.zone}
    )


def kubernetes_provider(
    kubeconfig: pulumi.Input[str], context: str | None, cluster: pulumi.Resource | None
) -> k8s.Provider:
    """The cluster's provider. Objects whose cluster is gone are taken out of the state instead of waited for."""
    return k8s.Provider(
        "kubernetes",
        kubeconfig=kubeconfig,
        context=context,
        delete_unreachable=True,
        opts=pulumi.ResourceOptions(depends_on=[cluster] if cluster else None),
    )


def google_name(stack_name: str, longest: int) -> str:
    """`tpu-ray-<stack>` within `longest` characters, the same on every run."""
    name = "tpu-ray-" + "".join(c if c.isalnum() else "-" for c in stack_name.lower()).strip("-")
    if len(name) <= longest:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{name[: longest - 7].rstrip('-')}-{mark}"


def _snake(key: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)

"""One RayService."""

from collections.abc import Mapping
from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s

from infra.plan.identity import CLUSTER

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Pulumi's own wait knows only that the object exists; whether it answers is another resource's."""

MOST_SLICES = 64
"""Replicas that a service can have."""


class RayServiceArgs(TypedDict):
    """What is served."""

    manifest: Mapping[str, object]
    """The whole object."""
    beside: bool
    """Whether a changed Ray cluster may come up beside the old one; otherwise the old one goes first."""
    slices: int
    """Slices of the Ray cluster, each a worker group."""


class RayService(pulumi.ComponentResource):
    """Makes one RayService. KubeRay keeps the Ray cluster that it makes of it; nothing of that is touched here."""

    uid: pulumi.Output[str | None]

    def __init__(self, name: str, args: RayServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:RayService", name, {}, opts)
        made = custom_resource(
            name,
            _cleaned_up(args["manifest"]),
            pulumi.ResourceOptions(
                parent=self,
                # The name is fixed, and a second one of it would be deleted by the end of a replacement:
                # https://github.com/pulumi/pulumi-kubernetes/issues/4522
                delete_before_replace=True,
                replace_on_changes=None if args["beside"] else _replaced_by(args["slices"]),
            ),
        )
        self.uid = uid(made)
        self.register_outputs({"uid": self.uid})


def _replaced_by(slices: int) -> list[str]:
    """Changes of the Ray cluster that KubeRay, with upgradeStrategy None, would take and do nothing with.

    More slices are none of them: KubeRay adds worker groups that come behind the others to the cluster that runs.
    Groups that go are, and so is what makes a slice or the head another, which `CLUSTER` names.
    """
    gone = [f"spec.rayClusterConfig.workerGroupSpecs[{number}]" for number in range(slices, MOST_SLICES)]
    return [f'metadata.annotations["{CLUSTER}"]', *gone]


def custom_resource(
    name: str,
    manifest: Mapping[str, object],
    opts: pulumi.ResourceOptions,
) -> k8s.apiextensions.CustomResource:
    """The object of a manifest, which nobody waits for."""
    metadata = manifest["metadata"]
    assert isinstance(metadata, Mapping)
    return k8s.apiextensions.CustomResource(
        name,
        api_version=str(manifest["apiVersion"]),
        kind=str(manifest["kind"]),
        metadata={**metadata, "annotations": {**metadata.get("annotations", {}), **SKIP_AWAIT}},
        spec=manifest["spec"],
        opts=opts,
    )


def uid(made: k8s.apiextensions.CustomResource) -> pulumi.Output[str | None]:
    """Names the very object. In a preview of a new one there is none, also where the rest of `metadata` is known."""
    found: pulumi.Output[str | None] = made.metadata.apply(lambda metadata: dict(metadata or {}).get("uid"))
    return found


def _cleaned_up(manifest: Mapping[str, object]) -> Mapping[str, object]:
    """With a Redis, KubeRay cleans up there when a Ray cluster is deleted, by a pod that needs the cluster's secret.

    Deleted from the foreground, as Pulumi does, the secret and that pod would go before the cluster.
    """
    spec, metadata = manifest["spec"], manifest["metadata"]
    assert isinstance(spec, Mapping)
    assert isinstance(metadata, Mapping)
    if "gcsFaultToleranceOptions" not in spec["rayClusterConfig"]:
        return manifest
    annotations = {**metadata.get("annotations", {}), "pulumi.com/deletionPropagationPolicy": "background"}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}

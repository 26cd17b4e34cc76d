"""One RayService."""

from collections.abc import Mapping
from copy import copy
from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s

from infra.plan.identity import CLUSTER
from workloads.spec.replicas import MOST_REPLICAS

SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}
"""Pulumi's own wait knows only that the object exists; whether it answers is another resource's."""


class RayServiceArgs(TypedDict):
    """What is served."""

    manifest: Mapping[str, object]
    """The whole object."""
    beside: int
    """The most slices that an old Ray cluster may have for a changed one to come up beside it; one that has more goes
    first. 0: whatever it has."""


class RayService(pulumi.ComponentResource):
    """Makes one RayService. KubeRay keeps the Ray cluster that it makes of it; nothing of that is touched here."""

    uid: pulumi.Output[str | None]

    def __init__(self, name: str, args: RayServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # A component is not replaced itself; its RayService is.
        own = copy(opts) if opts else pulumi.ResourceOptions()
        replace_with, own.replace_with = own.replace_with, None
        super().__init__("tpu-ray:index:RayService", name, {}, own)
        made = custom_resource(
            name,
            _cleaned_up(args["manifest"]),
            pulumi.ResourceOptions(
                parent=self,
                # The name is fixed, and a second one of it would be deleted by the end of a replacement:
                # https://github.com/pulumi/pulumi-kubernetes/issues/4522
                delete_before_replace=True,
                replace_on_changes=_replaced_by(args["manifest"], args["beside"]),
                replace_with=replace_with,
            ),
        )
        self.uid = uid(made)
        self.register_outputs({"uid": self.uid})


def _replaced_by(manifest: Mapping[str, object], beside: int) -> list[str]:
    """Changes of the Ray cluster that KubeRay, with upgradeStrategy None, would take and do nothing with; and with
    NewCluster those that leave no slice for the new cluster.

    More slices are none of them: KubeRay adds worker groups that come behind the others to the cluster that runs.
    Groups that go are, and so is what makes a slice or the head another, which `CLUSTER` names. A group that goes tells
    how many slices the old cluster has: one more than its number.
    """
    if beside:
        return [f"spec.rayClusterConfig.workerGroupSpecs[{number}]" for number in range(beside, MOST_REPLICAS)]
    spec = manifest["spec"]
    assert isinstance(spec, Mapping)
    slices = len(spec["rayClusterConfig"]["workerGroupSpecs"])
    gone = [f"spec.rayClusterConfig.workerGroupSpecs[{number}]" for number in range(slices, MOST_REPLICAS)]
    return [f'metadata.annotations["{CLUSTER}"]', *gone]


def custom_resource(
    name: str, manifest: Mapping[str, object], opts: pulumi.ResourceOptions
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

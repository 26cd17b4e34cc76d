"""`tpu-ray:platform` of kind `gke`: where the cluster is, how it is made, and what of it outlives the stack."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from infra.stack import forms
from infra.stack.ray import RaySpec
from workloads.spec.service import NAME_PATTERN

Cidr = Annotated[str, Field(pattern=forms.CIDR)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CpuNodes(_Frozen):
    """The pool without chips, for the heads of the Ray clusters and for the cluster's own pods."""

    machine_type: str | None = Field(
        default=None, pattern=forms.MACHINE, description="Absent: one that exists in the zone."
    )
    min: int = Field(default=1, ge=1, le=100, description="Nodes that are kept.")
    max: int = Field(default=4, ge=1, le=1000, description="Nodes at most.")


class ClusterSpec(_Frozen):
    """The GKE cluster: one that is made, or one that is there already."""

    existing: str | None = Field(
        default=None,
        pattern=NAME_PATTERN,
        max_length=40,
        description="Name of a cluster that is there already, in the region or the zone: pools are made in it, and "
        "neither it nor its network is touched.",
    )
    kubeconfig: str | None = Field(
        default=None,
        min_length=1,
        description="A file with the credentials of a cluster that is there already. With `existing` only the way to "
        "log in; alone, the cluster has its node pools already and none is made.",
    )
    context: str | None = Field(
        default=None, min_length=1, description="The context in that file; absent: its current one."
    )
    location: Literal["region", "zone"] = Field(
        default="region",
        description="Where the control plane is: in all zones of the platform's region, or in its zone alone.",
    )
    channel: Literal["RAPID", "REGULAR", "STABLE"] = Field(
        default="RAPID", description="Release channel. New TPU generations come to `RAPID` first."
    )
    version: str | None = Field(
        default=None, pattern=forms.GKE_VERSION, description="Lowest version of the control plane, e.g. `1.35`."
    )
    deletion_protection: bool = Field(
        default=True,
        description="Whether `destroy` is refused before it deletes anything. Otherwise: write false, `up`, `destroy`.",
    )
    authorized_networks: tuple[Cidr, ...] = Field(
        default=(),
        max_length=50,
        description="Who may reach the control plane's address; absent: whoever has credentials.",
    )
    cpu_nodes: CpuNodes = Field(default=CpuNodes(), description="The pool of nodes without chips.")

    @property
    def is_made(self) -> bool:
        """Whether the stack makes the cluster, and with it the pool of nodes without chips."""
        return not (self.existing or self.kubeconfig)

    @property
    def gets_pools(self) -> bool:
        """Whether the stack makes node pools in it: not where only the credentials are given."""
        return self.is_made or self.existing is not None


class NetworkSpec(_Frozen):
    """Address ranges of the cluster's own network. They cannot be changed later without a new cluster."""

    nodes: Cidr = Field(default="10.0.0.0/20", description="Nodes.")
    pods: Cidr = Field(default="10.16.0.0/12", description="Pods; a node takes 2 x its most pods of it.")
    services: Cidr = Field(default="10.1.0.0/20", description="Kubernetes services.")
    control_plane: Cidr = Field(default="172.16.0.0/28", description="The control plane; a /28.")
    second_nics: Cidr = Field(default="10.2.0.0/20", description="Second network interfaces of TPU hosts.")


class GkePlatform(_Frozen):
    """A GKE cluster with the Ray operator add-on, and one TPU node pool per slice."""

    kind: Literal["gke"] = Field(default="gke", description="`gke`: a cluster on Google Kubernetes Engine.")
    project: str = Field(pattern=forms.PROJECT, description="Google Cloud project id.")
    region: str = Field(pattern=forms.REGION, description="Region of the cluster, e.g. `us-east5`.")
    zone: str = Field(
        pattern=forms.ZONE,
        description="Zone of the node pools: a slice lies in one zone.",
    )
    image: str = Field(
        pattern=forms.IMAGE,
        description="Container image with Ray and this project's `workloads` in it.",
    )
    storage: str = Field(
        pattern=forms.BUCKET,
        description="Bucket for checkpoints and exported models, `gs://...`.",
    )
    make_storage: bool = Field(default=True, description="Whether the bucket is made; false: it is there already.")
    delete_storage: bool = Field(
        default=False, description="Whether `destroy` deletes the bucket with everything in it; false: it stays."
    )
    registry: str | None = Field(
        default=None,
        pattern=NAME_PATTERN,
        max_length=63,
        description="Name of an Artifact Registry repository to make for the images; absent: none.",
    )
    namespace: str = Field(
        default="default", pattern=NAME_PATTERN, max_length=63, description="Kubernetes namespace of the workloads."
    )
    ray_version: str = Field(
        default="2.60.0", pattern=forms.VERSION, description="Ray's version; must be the one in the image."
    )
    kueue_chart: str = Field(
        default="oci://registry.k8s.io/kueue/charts/kueue",
        min_length=1,
        description="Helm chart of Kueue, which pools of capacity `queued` need; an address or a folder.",
    )
    cluster: ClusterSpec = Field(default=ClusterSpec(), description="How the cluster is made, or which one is taken.")
    network: NetworkSpec = Field(default=NetworkSpec(), description="Address ranges of the network that is made.")
    ray: RaySpec = Field(default=RaySpec(), description="Which KubeRay there is, and what guards the Ray clusters.")

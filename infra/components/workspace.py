"""Where the workloads live in the cluster: their namespace and their identity."""

from typing import NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as k8s

from infra.plan.identity import ACCOUNT, HUB_KEY, HUB_SECRET


class WorkspaceArgs(TypedDict):
    """What the workloads need before they come."""

    namespace: str
    hub_token: NotRequired[pulumi.Input[str]]
    """A model hub's token; pods get it from a Kubernetes secret by reference."""


class Workspace(pulumi.ComponentResource):
    """Makes the namespace (unless it is `default`), the pods' service account and, where there is a token, a secret."""

    namespace: pulumi.Output[str]

    def __init__(self, name: str, args: WorkspaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:Workspace", name, {}, opts)
        mine = pulumi.ResourceOptions(parent=self)
        namespace: pulumi.Input[str] = args["namespace"]
        if namespace != "default":
            made = k8s.core.v1.Namespace(name, metadata={"name": namespace}, opts=mine)
            namespace = made.metadata["name"]
        metadata = {"namespace": namespace}
        k8s.core.v1.ServiceAccount(name, metadata={**metadata, "name": ACCOUNT}, opts=mine)
        if token := args.get("hub_token"):
            k8s.core.v1.Secret(
                f"{name}-hub",
                metadata={**metadata, "name": HUB_SECRET},
                string_data={HUB_KEY: pulumi.Output.secret(token)},
                opts=mine,
            )
        self.namespace = pulumi.Output.from_input(namespace)
        self.register_outputs({"namespace": self.namespace})


def pod_identity(project: str, project_number: pulumi.Input[str], namespace: str) -> pulumi.Output[str]:
    """The pods' service account as IAM names it, without a Google service account in between.

    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/workload-identity#kubernetes-resources-iam-policies
    """
    return pulumi.Output.concat(
        "principal://iam.googleapis.com/projects/",
        project_number,
        f"/locations/global/workloadIdentityPools/{project}.svc.id.goog/subject/ns/{namespace}/sa/{ACCOUNT}",
    )

"""The identity of the nodes: what a node needs to run, and nothing of the project besides."""

from typing import TypedDict

import pulumi
import pulumi_gcp as gcp

from infra.components.arguments import check_arguments

ROLES = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Writing logs and metrics, and pulling images:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/hardening-your-cluster#use_least_privilege_sa"""


class NodeAccountArgs(TypedDict):
    """Where the account is made, and what it is called."""

    project: str
    account_id: str
    """6 to 30 characters."""


class NodeAccount(pulumi.ComponentResource):
    """Makes a service account and its roles in the project. Pods do not get it: they have identities of their own."""

    email: pulumi.Output[str]

    def __init__(self, name: str, args: NodeAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_arguments(f"NodeAccount {name}", args, NodeAccountArgs)
        super().__init__("tpu-ray:index:NodeAccount", name, {}, opts)
        account = gcp.serviceaccount.Account(
            name,
            project=args["project"],
            account_id=args["account_id"],
            display_name="Nodes of tpu-ray",
            opts=pulumi.ResourceOptions(parent=self),
        )
        members = [
            gcp.projects.IAMMember(
                f"{name}-{role.rpartition('.')[2]}",
                project=args["project"],
                role=role,
                member=account.member,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for role in ROLES
        ]
        # A node that starts before its account may pull images does not come up: the address is given with the roles.
        self.email = pulumi.Output.all(account.email, *(member.etag for member in members)).apply(_first)
        self.register_outputs({"email": self.email})


def _first(values: list[str]) -> str:
    return values[0]

"""What begins the runs of a job at their times."""

from collections.abc import Mapping
from typing import Any, TypedDict

import pulumi
import pulumi_kubernetes as k8s


class ScheduledJobArgs(TypedDict):
    """What begins them."""

    manifests: Mapping[str, Mapping[str, Any]]
    """By kind: ServiceAccount, Role, RoleBinding and CronJob, each whole."""


class ScheduledJob(pulumi.ComponentResource):
    """Makes a CronJob and the account that it begins runs with. Nobody waits for a run, and none is touched by an edit:
    the next one is as the file says then. With the CronJob its runs go.
    """

    def __init__(self, name: str, args: ScheduledJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("tpu-ray:index:ScheduledJob", name, {}, opts)
        mine, made = pulumi.ResourceOptions(parent=self), args["manifests"]
        account = k8s.core.v1.ServiceAccount(name, metadata=made["ServiceAccount"]["metadata"], opts=mine)
        role = k8s.rbac.v1.Role(name, metadata=made["Role"]["metadata"], rules=made["Role"]["rules"], opts=mine)
        # Its roleRef cannot change, and its name is fixed.
        binding_opts = pulumi.ResourceOptions(parent=self, delete_before_replace=True, depends_on=[account, role])
        binding = k8s.rbac.v1.RoleBinding(
            name,
            metadata=made["RoleBinding"]["metadata"],
            role_ref=made["RoleBinding"]["roleRef"],
            subjects=made["RoleBinding"]["subjects"],
            opts=binding_opts,
        )
        k8s.batch.v1.CronJob(
            name,
            metadata=made["CronJob"]["metadata"],
            spec=made["CronJob"]["spec"],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[binding]),
        )
        self.register_outputs({})

"""The variables of a service's or a run's own, in all pods of its Ray cluster. Pure."""

from collections.abc import Mapping

from infra.platforms.gke.cluster import Manifest
from workloads.spec import SecretKey


def with_env(cluster: Manifest, env: Mapping[str, str], secret_env: Mapping[str, SecretKey]) -> Manifest:
    """The Ray cluster with these variables in the containers of all its hosts, the head's too: a command runs there.

    Not as Ray's `runtime_env`: Ray shows that to whoever asks, and KubeRay puts it between double quotes into a shell
    command, where `$` has a meaning.
    """
    if not (env or secret_env):
        return cluster
    head, workers = cluster["headGroupSpec"], cluster["workerGroupSpecs"]
    assert isinstance(workers, list)
    # Sorted: the order that they are written in is no reason for other pods.
    # Kubernetes reads `$$` as `$`, and `$(NAME)` as another variable.
    plain: list[Manifest] = [{"name": name, "value": value.replace("$", "$$")} for name, value in sorted(env.items())]
    # Not optional: a pod without its secret does not start, and says which one it lacks.
    secret: list[Manifest] = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": one.secret, "key": one.key}}}
        for name, one in sorted(secret_env.items())
    ]
    theirs = [*plain, *secret]
    groups = [_group(group, theirs) for group in (head, *workers)]
    return {**cluster, "headGroupSpec": groups[0], "workerGroupSpecs": groups[1:]}


def _group(group: Manifest, theirs: list[Manifest]) -> Manifest:
    template = group["template"]
    assert isinstance(template, dict)
    first, *others = template["spec"]["containers"]
    named = {entry["name"] for entry in theirs}
    ours = [entry for entry in first["env"] if entry["name"] not in named]
    containers = [{**first, "env": [*ours, *theirs]}, *others]
    return {**group, "template": {**template, "spec": {**template["spec"], "containers": containers}}}

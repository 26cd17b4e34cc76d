"""Names inside the cluster that pods and the objects made for them share."""

ACCOUNT = "tpu-ray"
"""The Kubernetes service account of all pods of a stack."""
HUB_SECRET, HUB_KEY = "tpu-ray-hub", "token"
"""The Kubernetes secret with a model hub's token, and its key."""
QUEUE = "tpu-ray"
"""Kueue's local queue, in the stack's namespace."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""On what stands in a queue: its name."""
CLUSTER = "tpu-ray/cluster"
"""Annotation of a RayService: changes with its Ray cluster, and not with the number of its slices."""
SERVICE_LABEL, JOB_LABEL = "tpu-ray/service", "tpu-ray/job"
"""Labels of a service's and a job's pods, with its name."""


def services_priority(namespace: str) -> str:
    """The priority class of the services' pods. Such a class belongs to the whole cluster, so it has the namespace."""
    return f"tpu-ray.{namespace}.services"

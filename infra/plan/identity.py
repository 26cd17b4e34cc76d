"""Names inside the cluster that pods and the objects made for them share."""

ACCOUNT = "tpu-ray"
"""The Kubernetes service account of all pods of a stack."""
HUB_SECRET, HUB_KEY = "tpu-ray-hub", "token"
"""The Kubernetes secret with a model hub's token, and its key."""
QUEUE = "tpu-ray"
"""Kueue's local queue, in the stack's namespace."""

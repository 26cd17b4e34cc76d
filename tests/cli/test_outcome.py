"""What a preview says of a step beside Pulumi's own words."""

import pytest

from infra.cli.outcome import means
from infra.plan.identity import CLUSTER

PARENTS = "urn:pulumi:dev::tpu-ray::tpu-ray:index:RayService$"
SERVICE = f"{PARENTS}kubernetes:ray.io/v1:RayService::chat"


@pytest.mark.parametrize(
    ("operation", "keys", "words"),
    [
        ("replace", f"metadata.annotations.{CLUSTER}, spec.serveConfigV2", "no answers until"),
        ("update", f"metadata.annotations.{CLUSTER}, spec.serveConfigV2", "beside"),
        ("update", "spec.serveConfigV2", "in place"),
    ],
)
def test_a_step_of_a_service_is_told_in_the_plans_words(operation: str, keys: str, words: str) -> None:
    assert words in means(operation, SERVICE, keys)


@pytest.mark.parametrize(
    ("operation", "urn", "keys"),
    [
        ("create", SERVICE, ""),
        ("delete", SERVICE, ""),
        ("update", SERVICE, "spec.upgradeStrategy.type"),
        ("replace", f"{PARENTS}kubernetes:ray.io/v1:RayJob::chat", CLUSTER),
        ("update", "urn:pulumi:dev::tpu-ray::tpu-ray:index:RayService::chat", "spec.serveConfigV2"),
        ("update", "urn:pulumi:dev::tpu-ray::pulumi:pulumi:Stack::tpu-ray-dev", CLUSTER),
    ],
)
def test_of_every_other_step_nothing_is_told(operation: str, urn: str, keys: str) -> None:
    assert means(operation, urn, keys) == ""

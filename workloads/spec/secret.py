"""A secret of the user's own, named and never held: pods get its value from Kubernetes, by reference."""

from pydantic import BaseModel, ConfigDict, Field

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SECRET_PATTERN = rf"^{_LABEL}([.]{_LABEL})*$"
"""A DNS subdomain: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names"""
SECRET_KEY_PATTERN = r"^([-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}|[.][-_a-zA-Z0-9][-._a-zA-Z0-9]{0,251})$"
"""https://kubernetes.io/docs/concepts/configuration/secret/#restriction-names-data: no `.`, and no `..` in front
(IsConfigMapKey in k8s.io/apimachinery/pkg/util/validation/validation.go)."""


class SecretKey(BaseModel):
    """Where the value of one variable stands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret: str = Field(
        pattern=SECRET_PATTERN,
        max_length=253,
        description="Name of a Kubernetes secret in the namespace of the workloads. It is yours: the stack neither "
        "makes nor reads it.",
    )
    key: str = Field(pattern=SECRET_KEY_PATTERN, description="The key in that secret.")

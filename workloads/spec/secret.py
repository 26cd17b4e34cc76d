"""A secret of the user's own, named and never held: pods get its value from Kubernetes, by reference."""

from pydantic import BaseModel, ConfigDict, Field

SECRET_PATTERN = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"
"""A DNS subdomain: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names"""
SECRET_KEY_PATTERN = r"^[-._a-zA-Z0-9]{1,253}$"
"""https://kubernetes.io/docs/concepts/configuration/secret/#restriction-names-data"""


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

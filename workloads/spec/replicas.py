"""How many copies of a model a service has."""

from pydantic import BaseModel, ConfigDict, Field

MOST_REPLICAS = 64


class ReplicaCount(BaseModel):
    """From `min` to `max` replicas. A plain number is both, and then nothing comes or goes by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min: int = Field(
        default=1,
        ge=1,
        le=MOST_REPLICAS,
        description="Replicas that are always there. Not 0: while no replica is there nobody is answered, and a slice "
        "takes minutes to come.",
    )
    max: int = Field(
        ge=1,
        le=MOST_REPLICAS,
        description="Replicas at most: one more comes while those that are there have more to do than fits.",
    )
    idle_s: int = Field(
        default=300,
        ge=60,
        le=86400,
        description="How long there has to be too little to do before a replica goes, and then how long its slice is "
        "kept for another one.",
    )

    @property
    def moves(self) -> bool:
        """Whether replicas come and go with what there is to do."""
        return self.max > self.min

    def __str__(self) -> str:
        return f"{self.min} to {self.max}" if self.moves else str(self.max)

"""What can happen to a service when its stack file is edited, and in which words that is told."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

Fate = Literal[
    "added",
    "removed",
    "same",
    "in place",
    "more slices",
    "other number",
    "beside",
    "stuck",
    "replaced",
    "new hosts",
]
"""`in place`: Serve restarts its replicas, one after the other. `more slices`: replicas come, the others stay as they
are. `other number`: replicas come or go, by themselves in a range. `beside`: a second Ray cluster comes up, then takes
over. `stuck`: it would, but what the same edit takes away has its slices until the end of the `up`. `replaced`: the old
one goes first. `new hosts`: those of its pool are deleted and made anew, and with them what runs there."""

Answers = Literal["all", "late", "none", "gone"]
"""`late`: requests wait until its only replica is there again. `none`: nobody answers until it is ready."""

MEANS: Mapping[Fate, str] = {
    "added": "it comes",
    "removed": "it goes",
    "same": "",
    "in place": "Serve restarts its replicas, one after the other",
    "more slices": "replicas are added, the others are not touched",
    "other number": "replicas come or go, those that stay are not touched",
    "beside": "a second Ray cluster comes up beside the old one, then takes over",
    "stuck": "a second Ray cluster would wait for slices that go free at the end of this `up`, which waits for it; "
    "make it two edits: first what goes, then the rest",
    "replaced": "it is deleted, then made anew",
    "new hosts": "its hosts are deleted, then made anew",
}
ANSWERS: Mapping[Answers, str] = {
    "all": "no request is lost",
    "late": "requests wait until its replica is back",
    "none": "no answers until it is ready",
    "gone": "no answers any more",
}


class ServiceChange(BaseModel):
    """What happens to one service. `peak_chips`: of its slices while it happens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: str
    fate: Fate
    answers: Answers
    peak_chips: int

"""Google's side in memory, just enough to drive the provider.

As a program it is the provider with that behind it, which keeps its things in the file that FAKE_CLOUD names.
"""

import json
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.rig.gcp.server import Refusals, serve
from tests.rig.gcp.values import Object, Value


class FakeRefused(Exception):
    """Google refuses."""


class FakeHalfMade(FakeRefused):
    """Google made it, and it is broken."""

    def __init__(self, message: str, id: str, outputs: Object) -> None:
        super().__init__(message)
        self.id = id
        self.outputs = outputs


@dataclass
class FakeCloud:
    """Keeps what it is sent; `calls` are the verbs with what came along."""

    file: Path | None = None
    things: dict[str, Object] = field(default_factory=dict)
    calls: list[tuple[str, str, Value]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.file is not None and self.file.exists():
            self.things = json.loads(self.file.read_text())

    def keep(self) -> None:
        """Write what is there where the next process finds it."""
        if self.file is not None:
            self.file.write_text(json.dumps(self.things))

    def create(self, token: str, inputs: Object) -> tuple[str, Object]:
        """Make it; one named `refused` is refused, one named `broken` is made and broken."""
        with self.lock:
            name = str(inputs.get("name"))
            self.calls.append(("create", token, inputs))
            if name.startswith("refused"):
                raise FakeRefused("googleapi: Error 400: no")
            id = f"{token.rsplit(':', 1)[-1]}/{name}"
            outputs: Object = {**inputs, "selfLink": f"https://example.invalid/{id}"}
            if token.endswith(":Cluster"):
                outputs |= {"masterVersion": "1.34.1-gke.1", "endpoint": "127.0.0.1"}
            if token.endswith(":NodePool"):
                outputs |= {"version": "1.34.1-gke.1", "initialNodeCount": inputs.get("nodeCount")}
            self.things[id] = outputs
            self.keep()
            if name.startswith("broken"):
                raise FakeHalfMade("googleapi: GCE_STOCKOUT", id, outputs)
            return id, outputs

    def read(self, token: str, id: str) -> Object | None:
        """What is there."""
        return self.things.get(id)

    def update(self, token: str, id: str, changed: Object) -> Object:
        """Change it."""
        with self.lock:
            self.calls.append(("update", token, changed))
            self.things[id] = {
                name: value for name, value in {**self.things[id], **changed}.items() if value is not None
            }
            self.keep()
            return self.things[id]

    def delete(self, token: str, id: str, state: Object) -> None:
        """Take it away."""
        with self.lock:
            self.calls.append(("delete", token, id))
            self.things.pop(id, None)
            self.keep()

    def invoke(self, token: str, args: Object) -> Object:
        """Give the arguments back, and a token."""
        return {**args, "accessToken": "t0k3n"}


if __name__ == "__main__":
    server, port = serve(FakeCloud(Path(os.environ["FAKE_CLOUD"])), Refusals(FakeRefused, FakeHalfMade))
    print(port, flush=True)
    server.wait_for_termination()

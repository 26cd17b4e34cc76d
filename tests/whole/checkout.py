"""A user's checkout with the default stack on free ports."""

from pathlib import Path

from infra.platforms.local.folders import Folders
from infra.platforms.local.ports import pick
from tests.checkout import Checkout


class LocalCheckout(Checkout):
    """The stack `local`, as it comes with the project."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "local")
        self.http_port, self.dashboard_port = pick(2)
        self.config["tpu-ray:platform"] = {
            "kind": "local",
            "http_port": self.http_port,
            "dashboard_port": self.dashboard_port,
        }
        self.write()

    def url(self, service: str) -> str:
        """Base of a service's OpenAI routes."""
        return f"http://127.0.0.1:{self.http_port}/{service}/v1"

    @property
    def storage(self) -> Path:
        """Where the jobs of the stack write."""
        return Folders("local", self.home / "local" / "local").storage

    @property
    def ray_temp(self) -> Path:
        """Ray's folder of the stack."""
        return Folders("local", self.home / "local" / "local").ray_temp

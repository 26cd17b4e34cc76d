"""The real API server that a test hands out in the place of GKE's: `control_plane.json` in the double's folder."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tests.rig.cloud.settings import write_whole

FILE = "control_plane.json"


class ControlPlane(BaseModel):
    """Where it listens and how to get in.

    Attributes:
        url: e.g. `https://127.0.0.1:6443`.
        ca_pem_base64: certificate of the authority that signed the server's, as GKE gives it.
        token: bearer token of an administrator.
        crd_files: what the Ray add-on installs: YAML files with custom resource definitions.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    ca_pem_base64: str = ""
    token: str = ""
    crd_files: tuple[Path, ...] = ()

    @property
    def address(self) -> str:
        """Host and port, what a cluster shows as its endpoint."""
        return self.url.partition("://")[2].rstrip("/")


def write_control_plane(folder: Path, plane: ControlPlane) -> None:
    """Hand it out to the clusters from now on."""
    write_whole(folder / FILE, plane.model_dump_json(indent=1))


def read_control_plane(folder: Path) -> ControlPlane | None:
    """The one that is handed out, if any."""
    path = folder / FILE
    return ControlPlane.model_validate_json(path.read_bytes()) if path.exists() else None

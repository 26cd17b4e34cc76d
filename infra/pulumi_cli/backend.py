"""Where Pulumi keeps the state: where the user is logged in, else in a folder on this machine."""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Backend:
    """`own` is the folder of a backend that tpu-ray made; None where the user has chosen one, which `where` names."""

    where: str
    own: Path | None
    environment: Mapping[str, str]


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """`$TPU_RAY_HOME/pulumi`, else `$XDG_STATE_HOME/tpu-ray/pulumi`, else `~/.local/state/tpu-ray/pulumi`.

    With the local clusters that it tells of: whoever moves those by TPU_RAY_HOME has another state too.
    """
    if chosen := environ.get("TPU_RAY_HOME"):
        return Path(chosen).expanduser().resolve() / "pulumi"
    base = environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "tpu-ray" / "pulumi"


def chosen_by_user(project: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """The backend that the user is logged in to, in Pulumi's own order of precedence; None where there is none.

    A backend folder of tpu-ray's own counts as none, so that a shell with `tpu-ray env` in it behaves as one without.
    """
    url = environ.get("PULUMI_BACKEND_URL")
    if url == backend_url(state_dir(environ)):
        return None
    if url:
        return url
    settings = yaml.safe_load((project / "Pulumi.yaml").read_text()) or {}
    if url := (settings.get("backend") or {}).get("url"):
        return str(url)
    if environ.get("PULUMI_ACCESS_TOKEN"):
        return "Pulumi Cloud (PULUMI_ACCESS_TOKEN)"
    home = environ.get("PULUMI_CREDENTIALS_PATH") or environ.get("PULUMI_HOME") or str(Path.home() / ".pulumi")
    try:
        current = json.loads((Path(home) / "credentials.json").read_text()).get("current")
    except (OSError, ValueError, AttributeError):
        return None
    return str(current) if current and current != backend_url(state_dir(environ)) else None


def backend_url(state: Path) -> str:
    """The URL of the folder backend below `state`."""
    return f"file://{state / 'backend'}"


def choose_backend(project: Path, environ: Mapping[str, str] = os.environ) -> Backend:
    """The backend to use: the user's, else a folder with a passphrase of its own that only the user can read."""
    chosen = chosen_by_user(project, environ)
    if chosen is not None:
        return Backend(chosen, None, {})
    state = state_dir(environ)
    (state / "backend").mkdir(parents=True, exist_ok=True)
    state.chmod(0o700)
    passphrase = state / "passphrase"
    if not passphrase.exists():
        make_passphrase(passphrase)
    environment = {
        "PULUMI_BACKEND_URL": backend_url(state),
        # The stack's state holds the salt of its encryption. With this, Pulumi reads it from there, and a stack file
        # that is in version control needs no `encryptionsalt` of one machine.
        "PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER": "true",
        # Goes before the user's own, if there is one; PULUMI_CONFIG_PASSPHRASE would go before it and has to be unset.
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase),
    }
    return Backend(str(state / "backend"), state, environment)


def make_passphrase(path: Path) -> None:
    """Write a new passphrase, readable by the user only; when two processes race, the first one's stays."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(32))
    try:
        os.link(part, path)
    except FileExistsError:
        pass
    finally:
        part.unlink()

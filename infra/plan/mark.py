"""How a RayService's status tells which config Serve has: by a second application, whose deployment is named after it.

KubeRay copies Serve's statuses into the RayService's and says nothing of the config they are about; after a change it
reports the old application as RUNNING once more, and may do so until Serve has the new config. The bundled engine's
/health gives back `ServiceLaunch.mark`; vLLM and an application of the user's own have no such answer, and nothing of
ours may stand between a client and them. But statuses hold the names of deployments. KubeRay sends all applications in
one request; Serve then sets every changed one to DEPLOYING before it builds any
(ray/serve/_private/application_state.py of 2.60.0, apply_app_config), and KubeRay reads all statuses in one request
(getAndCheckServeStatus of 1.5 and 1.6). So a status that lists the new mark speaks of the new application. The mark has
no replicas, no route and needs no chip. Pure.
"""

import hashlib
import json
from collections.abc import Mapping

MARK_IMPORT_PATH = "workloads.serve.mark:build"


def digest(value: object) -> str:
    """12 hexadecimal digits that another JSON value does not have."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def mark_of(application: Mapping[str, object]) -> str:
    """The name of the deployment that goes with this application."""
    return f"mark-{digest(application)}"


def mark_name(service: str) -> str:
    """The name of the second application."""
    return f"{service}-mark"


def mark_application(application: Mapping[str, object]) -> dict[str, object]:
    """The second application beside this one. It finds its code where the first one does."""
    entry: dict[str, object] = {
        "name": mark_name(str(application["name"])),
        "route_prefix": None,
        "import_path": MARK_IMPORT_PATH,
        "args": {"mark": mark_of(application)},
    }
    return entry | ({"runtime_env": application["runtime_env"]} if "runtime_env" in application else {})

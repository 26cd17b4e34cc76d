"""The functions of the provider: what it fills in itself, around what Google answers."""

from collections.abc import Callable

from tests.rig.gcp.send import ApplyError
from tests.rig.gcp.settings import Settings
from tests.rig.gcp.values import Object, Secret

CLIENT_CONFIG = "gcp:organizations/getClientConfig:getClientConfig"
PROJECT = "gcp:organizations/getProject:getProject"
CLUSTER = "gcp:container/getCluster:getCluster"
VERSIONS = "gcp:container/getEngineVersions:getEngineVersions"


def answer_invoke(call: Callable[[str, Object], Object], token: str, args: Object, settings: Settings) -> Object:
    """A function's result.

    Args:
        call: Google's side: a function's token and arguments to its result.
        token: the function.
        args: the program's; project and location are filled in as the provider does.
        settings: the provider's.

    Raises:
        ApplyError: a place or a project is needed and nothing names one.
    """
    full = dict(args)
    if token == PROJECT:
        full.setdefault("projectId", settings.project)
        if full["projectId"] is None:
            raise ApplyError("no project value set. `project_id` must be set at the resource level, or a default")
    elif token in (CLUSTER, VERSIONS):
        full.setdefault("project", settings.project)
        full.setdefault("location", settings.location)
        if full["location"] is None:
            raise ApplyError("Unable to determine location: region/zone not configured in resource/provider config")
    answer = dict(call(token, full))
    if token == CLIENT_CONFIG:
        own: Object = {
            "project": settings.project,
            "region": settings.region,
            "zone": settings.zone,
            "defaultLabels": settings.default_labels,
            "id": f"projects/{settings.project}/regions/{settings.region}/zones/{settings.zone}",
        }
        answer.update({name: value for name, value in own.items() if value is not None})
        if "accessToken" in answer:
            answer["accessToken"] = Secret(answer["accessToken"])
    return answer

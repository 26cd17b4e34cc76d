"""`python -m workloads.submit_run`: begin a run of a scheduled job, inside the cluster that it runs in.

The pod of a CronJob starts it, with what SUBMISSION and JOB name in its environment. It needs pydantic and Python's
standard library. A run is called by its time: started twice for one time, it begins one run.
"""

import json
import os
import re
import ssl
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from workloads.spec.run import JOB_VARIABLE, STOPPED_ANNOTATION, SUBMISSION_VARIABLE, TIME_OF_RUN, Submission

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/"""
OVER = ("Complete", "Failed", "ValidationFailed")
"""`jobDeploymentStatus` of a RayJob that ends no other way (rayjob_types.go)."""
SUSPENDED = "Suspended"
TIMEOUT_S = 60.0
Json = dict[str, Any]


class SubmitError(Exception):
    """The API server refused, or cannot be reached; its words."""


class ApiServer:
    """The API server of the cluster that this process runs in, as the pod's account."""

    def __init__(self, account: Path, environment: Mapping[str, str]) -> None:
        host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
        self._url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        self._token = (account / "token").read_text().strip()
        trust = ssl.create_default_context(cafile=str(account / "ca.crt"))
        # Never through a proxy: the API server is inside.
        self._opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trust))

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """The answer to a request.

        Raises:
            HTTPError: it is refused.
            SubmitError: the server cannot be reached.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{path}", data, headers, method=method)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                found: Json = json.load(answer)
                return found
        except HTTPError:
            raise
        except URLError as error:
            raise SubmitError(f"the API server cannot be reached: {error.reason}") from None


def time_of(job: str, now: datetime) -> str:
    """The run's time in its name: that for which the CronJob made this Job, by whose name it is known, else now.

    A CronJob calls its Jobs `<name>-<minutes since 1970>` (k8s.io/kubernetes/pkg/controller/cronjob/utils.go).
    """
    minutes = re.search(r"-(\d{8})$", job)
    when = datetime.fromtimestamp(int(minutes.group(1)) * 60, UTC) if minutes else now
    return when.strftime("%y%m%d%H%M")


def submit(server: ApiServer, submission: Submission, time: str) -> str:
    """Begin the run of this time, unless the one before it still runs; what was done, in words.

    Raises:
        SubmitError: it is refused.
    """
    manifest: Json = json.loads(submission.manifest.replace(TIME_OF_RUN, time))
    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    runs = f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"
    try:
        label = quote(f"{submission.label}={submission.schedule}")
        found = server.ask("GET", f"{runs}?labelSelector={label}")["items"]
        if any(run["metadata"]["name"] == name for run in found):
            return f"run {name} has begun already"
        going = [run["metadata"]["name"] for run in found if not _is_over(run)]
        if going:
            return f"run {name} does not begin: {going[0]} still runs"
        oldest_first = sorted(found, key=lambda run: str(run["metadata"]["creationTimestamp"]))
        for run in oldest_first[: max(0, len(found) - submission.keep + 1)]:
            server.ask("DELETE", f"{runs}/{run['metadata']['name']}")
        owner = server.ask("GET", f"/apis/batch/v1/namespaces/{namespace}/cronjobs/{submission.schedule}")
        # With the schedule its runs go.
        manifest["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch/v1", "kind": "CronJob", "name": submission.schedule, "uid": owner["metadata"]["uid"]}
        ]
        server.ask("POST", runs, manifest)
    except HTTPError as error:
        raise SubmitError(f"run {name} does not begin: {error.code}: {_said(error)}") from None
    return f"run {name} has begun"


def _is_over(run: Json) -> bool:
    """Whether a run does nothing more: also one that somebody stopped, which KubeRay calls suspended from then on."""
    state = run.get("status", {}).get("jobDeploymentStatus")
    stopped = STOPPED_ANNOTATION in (run["metadata"].get("annotations") or {})
    return state in OVER or (stopped and state == SUSPENDED)


def _said(error: HTTPError) -> str:
    text = error.read().decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:300]


def main(account: Path = ACCOUNT, environment: Mapping[str, str] = os.environ) -> int:
    """Gives the exit code: 0 a run began, or none was to begin; 1 it could not."""
    submission = Submission.model_validate_json(environment[SUBMISSION_VARIABLE])
    try:
        server = ApiServer(account, environment)
        print(submit(server, submission, time_of(environment.get(JOB_VARIABLE, ""), datetime.now(UTC))), flush=True)
    except (SubmitError, OSError) as error:
        print(f"error: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

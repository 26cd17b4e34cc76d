"""What a service answers once it serves: the path that is asked, and the answers that count. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workloads.spec import AppSpec, ServiceSpec, VllmSpec

PROXYS_OWN = "Ping http://.../-/routes for available routes."
"""In Serve's own 404, of a proxy or HAProxy that knows no such route
(ray/serve/_private/proxy.py, replica.py and haproxy_templates.py of 2.60.0)."""


@dataclass(frozen=True)
class Health:
    """GET `path`, below the service's own, has a status below `below` once the service serves."""

    path: str
    below: int

    def is_answer(self, status: int, text: str) -> bool:
        """Whether this is the service's answer, and one of a service that serves."""
        return status < self.below and PROXYS_OWN not in text

    def wanted(self, service: str) -> str:
        """What is waited for, in words."""
        words = {201: "is 200", 400: "is below 400"}.get(self.below, "is answered")
        return f"GET /{service}{self.path} {words}"


BUNDLED = Health("/health", 201)
"""How the bundled engine is asked."""


def health_props(health: Health) -> dict[str, str | int]:
    """As properties of a resource."""
    return {"health": health.path, "answers_below": health.below}


def health_in(props: Mapping[str, Any]) -> Health:
    """Back from properties; those of a resource from before there were other engines name none."""
    return Health(props["health"], int(props["answers_below"])) if "health" in props else BUNDLED


def health_of(service: ServiceSpec) -> Health:
    """How a service is asked.

    vLLM's ingress has no /health; it lists its models (ray/llm/_internal/serve/core/ingress/ingress.py of 2.60.0,
    DEFAULT_ENDPOINTS). An application need not have a path of its own for this: where it names none any answer of it
    counts, also that there is nothing at `/`. Whether its deployments are healthy is what Serve knows.
    """
    if isinstance(service.engine, VllmSpec):
        return Health("/v1/models", 201)
    if isinstance(service.engine, AppSpec):
        return Health(service.engine.health, 400) if service.engine.health else Health("/", 500)
    return BUNDLED


def api_url(service: ServiceSpec, url: str) -> str:
    """What clients are given: the base URL of OpenAI's API, or the application's own."""
    return url if isinstance(service.engine, AppSpec) else f"{url}/v1"

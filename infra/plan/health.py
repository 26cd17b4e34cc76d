"""What a service answers once it serves: the path that is asked, and the answers that count. Pure."""

from dataclasses import dataclass

from workloads.spec import AppSpec, ServiceSpec, VllmSpec

PROXYS_OWN = "Ping http://.../-/routes for available routes."
"""In Serve's own 404, of a proxy or HAProxy that knows no such route
(ray/serve/_private/proxy.py, replica.py and haproxy_templates.py of 2.60.0)."""


@dataclass(frozen=True)
class Health:
    """GET `path`, below the service's own, has a status below `below` when the service serves."""

    path: str
    below: int

    def unanswered(self, status: int, text: str) -> bool:
        """Whether this answer is none of the service's, or one that says that it does not serve."""
        return status >= self.below or PROXYS_OWN in text

    @property
    def words(self) -> str:
        """What is waited for, behind the path."""
        return "is answered" if self.below == 500 else f"is below {self.below}" if self.below == 400 else "is 200"


def health_of(service: ServiceSpec) -> Health:
    """How a service is asked. vLLM's ingress has no /health; it lists its models
    (ray/llm/_internal/serve/core/ingress/ingress.py, DEFAULT_ENDPOINTS).

    An application need not have a path of its own for this: then any answer of it counts, also that there is nothing at
    `/`. Serve itself knows whether its deployments are healthy.
    """
    if isinstance(service.engine, VllmSpec):
        return Health("/v1/models", 201)
    if isinstance(service.engine, AppSpec):
        return Health(service.engine.health or "/", 400 if service.engine.health else 500)
    return Health("/health", 201)


def api_url(service: ServiceSpec, url: str) -> str:
    """What clients are given: the base URL of OpenAI's API, or the application's own."""
    return url if isinstance(service.engine, AppSpec) else f"{url}/v1"

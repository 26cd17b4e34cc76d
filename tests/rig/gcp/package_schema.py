"""The package schema that the engine may ask for; every property is of any type."""

import functools
import json

from tests.rig.gcp import VERSION
from tests.rig.gcp.catalogue import Property, load_catalogue


def _typed(prop: Property) -> dict[str, object]:
    return {"$ref": "pulumi.json#/Any", "secret": prop.secret}


@functools.cache
def package_schema() -> str:
    """JSON text."""
    catalogue = load_catalogue()
    resources = {
        token: {
            "properties": {name: _typed(prop) for name, prop in kind.properties.items()},
            "inputProperties": {name: _typed(prop) for name, prop in kind.properties.items() if not prop.output_only},
            "requiredInputs": [name for name, prop in kind.properties.items() if prop.required],
        }
        for token, kind in catalogue.resources.items()
    }
    functions = {
        token: {"inputs": {"properties": {name: {"$ref": "pulumi.json#/Any"} for name in args}}}
        for token, args in catalogue.invokes.items()
    }
    return json.dumps({"name": "gcp", "version": VERSION, "resources": resources, "functions": functions})

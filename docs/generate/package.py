"""Write docs/package.md: `SlicePool` in Pulumi programs of one's own. The programs shown are those that the tests run.

Run: `python docs/generate/package.py [--check]`.
"""

import json
import sys
from pathlib import Path
from typing import Any, cast

from docs.generate.page import write_or_check
from infra.components.arguments import ArgumentsError
from tpu_ray import SlicePool, SlicePoolArgs
from tpu_ray.plugin import COMPONENT_TYPES, Components

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "package.md"
PROGRAMS = ROOT / "tests" / "package" / "programs"

PYTHON = """\
<!-- Written by docs/generate/package.py from tests/package/programs, infra/components/slice_pool.py and its errors. -->

# Slices in a Pulumi program of your own

Where you have a GKE cluster and a Pulumi program already, the components do without a stack file. `SlicePool` makes
[the node pools](node-pools.md) of slices of one shape; everything else of the program is yours.

## Python

```sh
uv build --wheel                                           # in a checkout: dist/tpu_ray-*.whl
pip install 'dist/tpu_ray-0.1.0-py3-none-any.whl[infra]'   # in the program's environment
```

The wheel is three packages, `tpu_ray`, `infra` and `workloads`. With the extra `infra` come Pulumi and its providers
for Google Cloud and Kubernetes; no JAX and no Ray. A program beside it must not have Python packages `infra` or
`workloads` of its own: the import says so and names the place.

"""

RUN = """\

`pulumi up` makes the cluster, the nodes' account and one slice of 16 chips. After `pulumi config set slices 2` the next
`pulumi up` makes one node pool more and touches nothing else. `pulumi destroy` leaves nothing.

The cluster may be any GKE Standard cluster with Workload Identity and, for Ray, the Ray operator add-on. One that the
program does not make is named by its id, `projects/<project>/locations/<location>/clusters/<name>`.

`tpu_ray` also has the other components of a stack: `Network`, `Cluster`, `ExistingCluster`, `NodeAccount`, `Storage`,
`Registry`, `Workspace` and `Queue`.

## Arguments

What decides how much is made has to be known in a preview: such an argument is a value, never an output of another
resource. The others may be outputs.

"""

MISTAKES = """\

The output is `node_pools` (`nodePools`), the names of GKE's node pools.

A wrong argument ends the preview, all mistakes at once and without a traceback:

"""

OTHERS = """\

## Other languages

`plugin/` of a checkout offers `SlicePool`, `NodeAccount` and `Network` over Pulumi's plugin protocol. Components are
Python wherever they are used from: the machine that runs `pulumi` needs the checkout with its `.venv` (`make setup`).
In Pulumi YAML the whole program is

"""

END = """\

where `path` is the folder `plugin` of the checkout. With that folder on PATH the program needs no `plugins`. For code
in another language there is `pulumi package add <checkout>/plugin/pulumi-resource-tpu-ray`.

What the tests hold, with the real engine: the YAML program above, and a Python program that knows the component by its
type alone (`tpu-ray:index:SlicePool`, a remote component), come up, grow and go; mistakes are told in the program's own
names; the engine reads the package's schema. Code generated for TypeScript, Go, C# and Java has not been tried, nor
`pulumi package add` with the folder `plugin`, which lets Pulumi make a Python environment of its own.
"""


def page() -> str:
    """The whole page."""
    own, yaml = (PROGRAMS / "own" / "__main__.py").read_text(), (PROGRAMS / "yaml" / "Pulumi.yaml").read_text()
    parts = [PYTHON, _block("python", own), RUN, _arguments(), MISTAKES, _block("text", _mistakes()), OTHERS]
    return "".join([*parts, _block("yaml", yaml), END])


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def _arguments() -> str:
    schema = json.loads(Components(list(COMPONENT_TYPES), "tpu-ray").schema or "{}")
    component: dict[str, Any] = schema["resources"]["tpu-ray:index:SlicePool"]
    inputs = component["inputProperties"]
    lines = ["| Python | other languages | may be an output | |", "|---|---|---|---|"]
    for name in SlicePoolArgs.__annotations__:
        other = "".join(part.capitalize() if number else part for number, part in enumerate(name.split("_")))
        told = inputs[other]
        needed = "Required. " if other in component["requiredInputs"] else ""
        output = "" if told.get("plain") else "yes"
        lines.append(f"| `{name}` | `{other}` | {output} | {needed}{told['description']} |")
    return "\n".join(lines) + "\n"


def _mistakes() -> str:
    wrong = {
        "generation": "v6e",
        "topology": "4x5",
        "slices": 2,
        "project": "my-tpu-project",
        "zone": "us-east5-b",
        "cluster": "mine",
        "node_account": "tpu-nodes@my-tpu-project.iam.gserviceaccount.com",
    }
    try:
        SlicePool("train", cast(SlicePoolArgs, wrong))
    except ArgumentsError as error:
        return str(error)
    raise AssertionError("the arguments of the page are right")


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))

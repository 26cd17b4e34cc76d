"""Whether the image is the one that was meant: looked at before a slice is taken.

`python -m workloads.versions` does so where an image is built.
"""

import sys

from workloads.spec.versions import LOCKED, Versions, installed


class WrongVersions(RuntimeError):
    """The image holds other versions than those that were asked for. The text says which, and what to do."""


def check_versions(wanted: Versions | None, found: Versions | None = None) -> None:
    """Compare what is installed with what the launch asks for; without a wish everything is right.

    Raises:
        WrongVersions: something is missing or of another version.
    """
    if wanted is None:
        return
    here = found or installed()
    asked = {name: version for name, version in wanted.model_dump().items() if version is not None}
    have = here.model_dump()
    wrong = {name: have[name] or "not installed" for name, version in asked.items() if have[name] != version}
    if wrong:
        raise WrongVersions(
            f"the image holds other versions than this stack was made for. wanted: {_listed(asked)}. found: "
            f"{_listed(wrong)}. next: build the image from the Dockerfile beside this stack's tpu-ray, push it, and "
            "write its digest into platform.image"
        )


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


if __name__ == "__main__":
    try:
        check_versions(LOCKED)
    except WrongVersions as error:
        sys.exit(str(error))

"""`hf:<org>/<name>[@<revision>]`: a model of the Hugging Face hub, and where its files are put. Pure."""

import re
from dataclasses import dataclass

SCHEME = "hf:"
MARKER = "staged.json"
"""Written last: while it is missing, the files are not all there."""

_FORM = re.compile(r"hf:([A-Za-z0-9][-.\w]{0,95})/([A-Za-z0-9][-.\w]{0,95})(?:@([A-Za-z0-9][-./\w]{0,199}))?", re.ASCII)


@dataclass(frozen=True)
class HubModel:
    """One model of the hub. Without a revision `main` is meant, as it is when it is staged."""

    org: str
    name: str
    revision: str = "main"

    @property
    def repo(self) -> str:
        """`<org>/<name>`."""
        return f"{self.org}/{self.name}"

    @property
    def folder(self) -> str:
        """Below the models' folder: `<org>/<name>/<revision>`, whose slashes are no folders."""
        return f"{self.repo}/{self.revision.replace('/', '--')}"


def hub_model(text: str) -> HubModel | None:
    """The model that the text names, or None where it is of another form."""
    found = _FORM.fullmatch(text)
    if found is None or ".." in text:
        return None
    return HubModel(found[1], found[2], found[3] or "main")

"""Files that a killed process must not leave half written."""

from etils import epath  # type: ignore[import-untyped]


def write_whole(path: epath.Path, text: str) -> None:
    """Write `text`; a reader sees the old file or the new one, never a piece."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(text)
    part.replace(path)

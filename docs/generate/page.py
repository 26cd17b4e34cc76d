"""What every script of this folder ends with: write its file, or say whether the committed one is current."""

import sys
from pathlib import Path


def write_or_check(file: Path, text: str) -> int:
    """Write the file and return 0. With --check write nothing, and return 1 where the committed one differs."""
    if "--check" in sys.argv[1:]:
        return 0 if file.exists() and file.read_text() == text else 1
    file.write_text(text)
    return 0

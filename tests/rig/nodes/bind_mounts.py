"""Mounts of this machine, as a node's plugin makes them. Making and ending them takes root."""

import subprocess
from pathlib import Path
from typing import Protocol

MOUNTED = Path("/proc/self/mountinfo")


class Mounts(Protocol):
    """How folders are mounted."""

    def mounted(self, target: Path) -> bool: ...
    def mount(self, source: Path, target: Path, read_only: bool) -> None: ...
    def unmount(self, target: Path) -> None: ...


class MountError(Exception):
    """A mount could not be made or ended; with what the command said."""


class BindMounts:
    """Folders shown at a second place: `mount --bind`, as the process `of` sees them; None: as this one does."""

    def __init__(self, of: int | None = None) -> None:
        self._table = MOUNTED if of is None else Path(f"/proc/{of}/mountinfo")
        self._as = () if of is None else ("nsenter", "--mount", f"--target={of}", "--")

    def mounted(self, target: Path) -> bool:
        try:
            return str(target) in targets(self._table.read_text())
        except FileNotFoundError:  # The process is gone, and all that it saw with it.
            return False

    def mount(self, source: Path, target: Path, read_only: bool) -> None:
        """Raises MountError. Nothing is left mounted then."""
        _run(*self._as, "mount", "--bind", str(source), str(target))
        if read_only:
            # A bind mount takes the flags of its source, and others only when it is mounted again: mount(8).
            try:
                _run(*self._as, "mount", "-o", "remount,bind,ro", str(target))
            except MountError:
                self.unmount(target)
                raise

    def unmount(self, target: Path) -> None:
        """Raises MountError."""
        # What still has it open keeps it; nothing else sees it any more.
        _run(*self._as, "umount", "--lazy", str(target))


def targets(mountinfo: str) -> set[str]:
    """Where something is mounted: the fifth column, in which blanks are written in octal. proc_pid_mountinfo(5)"""
    columns = [line.split()[4] for line in mountinfo.splitlines()]
    escapes = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
    found = set()
    for column in columns:
        for escape, letter in escapes.items():
            column = column.replace(escape, letter)
        found.add(column)
    return found


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MountError(f"{' '.join(command)}: {done.stderr.strip()}")

"""The engine's detailed diff between a state and a plan, as the bridge makes it (`pkg/tfbridge/detailed_diff.go`)."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.rig.gcp.catalogue import Property, property_at
from tests.rig.gcp.values import UNKNOWN, Object, Path, Value, is_zero

Kind = Literal["add", "delete", "update"]


@dataclass(frozen=True)
class Change:
    """One difference.

    `forces` says that Terraform's plan replaces the resource because of it. `replaces` says that the bridge shows it
    as a reason once the resource is replaced: it also looks at the block around the property.
    """

    path: Path
    kind: Kind
    forces: bool
    replaces: bool


@dataclass(frozen=True)
class Comparison:
    """Compares two versions of one resource."""

    fields: Mapping[str, Property]
    forced: frozenset[Path]

    def changes(self, old: Object, new: Object) -> list[Change]:
        """All differences, sorted by path."""
        found: list[Change] = []
        for name in sorted(old.keys() | new.keys()):
            if not name.startswith("__"):
                found.extend(self._value((name,), old.get(name), new.get(name)))
        return found

    def _value(self, path: Path, old: Value, new: Value) -> Iterator[Change]:
        if old is new or old == new:
            return
        old = None if old in ([], {}) else old
        if old is None or new is None or new is UNKNOWN:
            if old is not None or new is not None:
                yield self._whole(path, old, new)
            return
        if isinstance(old, dict) and isinstance(new, dict):
            for name in sorted(old.keys() | new.keys()):
                yield from self._value((*path, name), old.get(name), new.get(name))
        elif isinstance(old, list) and isinstance(new, list):
            yield from self._list(path, old, new)
        else:
            yield self._leaf(path, "update")

    def _list(self, path: Path, old: "list[Value]", new: "list[Value]") -> Iterator[Change]:
        prop = property_at(self.fields, path)
        if prop is not None and prop.unordered:
            removed = {index for index, item in enumerate(old) if item not in new}
            added = {index for index, item in enumerate(new) if item not in old}
            for index in sorted(removed | added):
                before = old[index] if index in removed else None
                after = new[index] if index in added else None
                yield from self._value((*path, index), before, after)
        elif prop is not None and prop.fields:
            for index in range(max(len(old), len(new))):
                before = old[index] if index < len(old) else None
                after = new[index] if index < len(new) else None
                yield from self._value((*path, index), before, after)
        else:
            yield from self._scalars(path, old, new)

    def _scalars(self, path: Path, old: "list[Value]", new: "list[Value]") -> Iterator[Change]:
        before, after = [repr(item) for item in old], [repr(item) for item in new]
        gone: set[int] = set()
        come: set[int] = set()
        for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if tag != "equal":
                gone.update(range(a, b))
                come.update(range(c, d))
        for index in sorted(gone | come):
            kind: Kind = "update" if index in gone and index in come else "add" if index in come else "delete"
            yield self._leaf((*path, index), kind)

    def _leaf(self, path: Path, kind: Kind) -> Change:
        return Change(path, kind, self._forces(path), self._replaces(path))

    def _whole(self, path: Path, old: Value, new: Value) -> Change:
        kind: Kind = "add" if old is None else "delete" if new is None else "update"
        # What comes counts, and what goes; of something unknown only the property itself.
        value = old if new is None or new is UNKNOWN else new
        below = list(_below(path, value)) if new is not UNKNOWN else [path]
        return Change(
            path, kind, any(self._forces(inner) for inner in below), any(self._replaces(inner) for inner in below)
        )

    def _forces(self, path: Path) -> bool:
        if path in self.forced:
            return True
        prop = property_at(self.fields, path)
        return prop is not None and prop.force_new

    def _replaces(self, path: Path) -> bool:
        above = property_at(self.fields, path[:-1]) if len(path) > 1 else None
        return self._forces(path) or (above is not None and above.force_new)


def _below(path: Path, value: Value) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            if not is_zero(item):
                yield from _below((*path, name), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below((*path, index), item)

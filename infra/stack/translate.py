"""pydantic's errors as problems of the stack file. The only place that knows pydantic's error types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, to_json

from infra.stack.forms import form_of, slug
from infra.stack.plain import Plain, is_secret, is_secret_name, without_secrets
from infra.stack.problems import Problem
from workloads.spec import SliceError
from workloads.spec.generations import GENERATIONS
from workloads.spec.nearest import nearest

Model = TypeVar("Model", bound=BaseModel)
Path = tuple[str | int, ...]
NO_SUCH_KEY = "there is no such key here"


@dataclass(frozen=True)
class Entry(Generic[Model]):
    """One entry of the stack file, as far as it could be read.

    `raw` is what the user wrote. `spec` is it as a value, with the broken parts replaced by their defaults so that
    rules about the other parts can still speak; None where too little is right. `broken` names the replaced parts.
    """

    key: str
    raw: Mapping[str, Plain]
    spec: Model | None
    broken: frozenset[Path] = field(default_factory=frozenset)

    def sound(self, *parts: str) -> bool:
        """Whether these parts (`engine.context`) were read as the user wrote them."""
        if self.spec is None:
            return False
        wanted = [tuple(part.split(".")) for part in parts]
        return not any(
            hurt[: len(part)] == part or part[: len(hurt)] == hurt for part in wanted for hurt in self.broken
        )

    def wrote(self, part: str) -> bool:
        """Whether the user wrote this part (`engine.context`) at all, or left it to its default."""
        value: Plain = dict(self.raw)
        for name in part.split("."):
            if not isinstance(value, dict) or name not in value:
                return False
            value = value[name]
        return True

    def text(self, part: str) -> str | None:
        """The text that the user wrote at this part, or None where there is none."""
        value = self.raw.get(part)
        return value if isinstance(value, str) else None


def read_entry(model: Any, raw: Plain, key: str) -> tuple[Entry[Any], list[Problem]]:
    """Read one entry that stands at `key`; `model` is a pydantic model or a union of them told apart by `kind`."""
    if not isinstance(raw, dict):
        problem = Problem(key=key, value=without_secrets(raw), reason="here belongs a mapping of keys to values")
        return Entry(key, {}, None), [problem]
    adapter: TypeAdapter[Any] = TypeAdapter(model)
    try:
        return Entry(key, raw, _validate(adapter, raw)), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    problems: list[Problem] = []
    broken: set[Path] = set()
    repaired: Plain = raw
    for detail in details:
        place = _place(detail, raw)
        broken.add(place)
        repaired = _without(repaired, place, missing=detail["type"] == "missing")
        if not isinstance(detail.get("ctx", {}).get("error"), SliceError):
            problem = _problem(detail, place, raw, key, model)
            problems.append(_hidden(problem) if any(is_secret_name(str(part)) for part in place) else problem)
    try:
        spec = _validate(adapter, repaired)
    except ValidationError:
        # What a slice's words say together is told by a rule; any right slice lets rules speak about other parts.
        broken.update((part,) for part in _ANY_SLICE)
        spec = _validated(adapter, {**repaired, **_ANY_SLICE} if isinstance(repaired, dict) else repaired)
    return Entry(key, raw, spec, frozenset(broken)), _unique(problems)


def dotted(key: str, place: Path) -> str:
    """`tpu-ray:pools[0]` and ("slices", "min") as `tpu-ray:pools[0].slices.min`."""
    return key + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)


def as_number(bound: float) -> str:
    """A limit as one writes it: whole numbers in all their digits."""
    return str(int(bound)) if float(bound).is_integer() else f"{bound:g}"


def _validate(adapter: TypeAdapter[Any], raw: Plain) -> Any:
    return adapter.validate_json(to_json(raw), strict=True)


def _validated(adapter: TypeAdapter[Any], raw: Plain) -> Any:
    """The value, or None where it is still not right."""
    try:
        return _validate(adapter, raw)
    except ValidationError:
        return None


def _place(detail: ErrorDetails, raw: dict[str, Plain]) -> Path:
    """Where the mistake is in what the user wrote: pydantic's location without the names that unions put in."""
    place: list[str | int] = []
    here: Plain = raw
    location = detail["loc"]
    for number, part in enumerate(location):
        if isinstance(here, dict):
            if part not in here and not (detail["type"] == "missing" and number == len(location) - 1):
                continue
            here = here.get(str(part))
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        else:
            continue
        place.append(part)
    if detail["type"] in ("union_tag_not_found", "union_tag_invalid") and isinstance(here, dict):
        place.append("kind")
    return tuple(place)


def _value(raw: Plain, place: Path) -> Plain:
    here = raw
    for part in place:
        if isinstance(here, dict):
            here = here.get(str(part))
        elif isinstance(here, list) and isinstance(part, int):
            here = here[part]
    return here


def _without(raw: Plain, place: Path, missing: bool) -> Plain:
    """`raw` with the broken part taken out. A whole list goes for one item of it; a required text is replaced."""
    if not isinstance(raw, dict) or not place:
        return raw
    first, rest = str(place[0]), place[1:]
    rest = () if rest and isinstance(rest[0], int) else rest
    kept = {name: inner for name, inner in raw.items() if name != first}
    if rest and isinstance(raw.get(first), dict):
        return {**kept, first: _without(raw[first], rest, missing)}
    if first in _REQUIRED:
        return {**kept, first: _REQUIRED[first]}
    return kept


# What stands in for a required part that is missing or broken. Rules never look at it: it is among the broken parts.
_REQUIRED: dict[str, Plain] = {
    "name": "x",
    "pool": "x",
    "model": "x",
    "import_path": "x:x",
    "project": "my-project",
    "region": "us-east5",
    "zone": "us-east5-a",
    "image": "x",
    "storage": "gs://my-bucket",
    "secret": "x",
    "key": "x",
}

_ANY_SLICE: dict[str, Plain] = {"generation": "v6e", "topology": "1x1", "machine_type": None}


def _problem(detail: ErrorDetails, place: Path, raw: Plain, key: str, model: Any) -> Problem:
    value = _value(raw, place)
    shown = without_secrets(value)
    where = dotted(key, place)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing" or kind == "union_tag_not_found":
        allowed = _tags(model) if kind != "missing" else ()
        return Problem(key=where, reason="this key is required and missing", allowed=allowed)
    if kind == "extra_forbidden":
        known = _known_keys(model, raw, place[:-1])
        name = str(place[-1])
        shown = "[secret]" if name == "secure" or is_secret_name(name) else shown
        return Problem(key=where, value=shown, reason=NO_SUCH_KEY, allowed=known, nearest=nearest(name, known))
    if kind == "union_tag_invalid":
        of_engine = "engine" in place
        tags = _tags(model.model_fields["engine"].annotation if of_engine else model)
        return Problem(
            key=where,
            value=shown,
            reason="there is no such engine" if of_engine else "there is no such platform",
            allowed=tags,
            nearest=nearest(str(value), tags) if isinstance(value, str) else None,
        )
    if is_secret(value):
        return Problem(key=where, value=shown, reason="a secret cannot stand here")
    if kind == "literal_error":
        choices = tuple(part.strip().strip("'") for part in str(context["expected"]).replace(" or ", ", ").split(", "))
        return Problem(
            key=where,
            value=shown,
            reason="not one of the words allowed here",
            allowed=choices,
            nearest=nearest(str(value), choices),
        )
    if kind in _BOUNDS:
        words, open_end = _BOUNDS[kind]
        # A number is the most and the least at once: the narrower limit holds.
        bound = max(1, next(iter(context.values()))) if place in _COUNTS else next(iter(context.values()))
        limit = f"{words} {as_number(bound)}"
        close = None if open_end else int(bound) if float(bound).is_integer() else bound
        return Problem(key=where, value=shown, reason=f"must be {limit}", allowed=(limit,), nearest=close)
    if kind == "string_pattern_mismatch":
        return _pattern_problem(where, str(value), str(context["pattern"]))
    if kind == "string_too_long":
        most = int(context["max_length"])
        close = str(value)[:most].rstrip("-")
        reason = f"{len(str(value))} characters; at most {most} fit"
        return Problem(key=where, value=shown, reason=reason, allowed=(f"at most {most} characters",), nearest=close)
    if kind == "string_too_short":
        return Problem(key=where, value=shown, reason="must not be empty", allowed=("a text that is not empty",))
    if kind == "too_long":
        limit = f"at most {context['max_length']} values"
        return Problem(key=where, value=shown, reason=f"must hold {limit}", allowed=(limit,))
    if kind == "too_short":
        return Problem(key=where, value=shown, reason="must hold at least one value", allowed=("at least one value",))
    wanted = _COUNT if place in _COUNTS else _TYPES.get(kind)
    if wanted is None:
        return Problem(key=where, value=shown, reason=detail["msg"])
    allowed = tuple(GENERATIONS) if place == ("generation",) else (wanted,)
    in_quotes = wanted == _TEXT and isinstance(value, int | float) and place[-1:] not in _NAMES
    return Problem(
        key=where,
        value=shown,
        reason=f"must be {wanted}" + (": write it in quotes" if in_quotes and allowed == (_TEXT,) else ""),
        allowed=allowed,
        nearest=_as_wanted(value, wanted, place),
    )


def _hidden(problem: Problem) -> Problem:
    """What stands where a secret is to be named, or has no place, may be the secret itself."""
    if problem.value is None:
        return problem
    near = problem.nearest if problem.reason == NO_SUCH_KEY else None
    return problem.model_copy(update={"value": "[secret]", "nearest": near})


_BOUNDS = {
    "greater_than": ("above", True),
    "greater_than_equal": ("at least", False),
    "less_than": ("below", True),
    "less_than_equal": ("at most", False),
}
_COUNT = "a whole number, or {min: ..., max: ...}"
_COUNTS = ("slices",), ("replicas",)
_NAMES = ("name",), ("run",), ("pool",), ("namespace",)
_TEXT, _WHOLE, _NUMBER = "text", "a whole number", "a number"
_TYPES = {
    "string_type": _TEXT,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": _NUMBER,
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
}


def _as_wanted(value: Plain, wanted: str, place: Path) -> int | float | str | None:
    """A number written as text, a text written as number, a whole number written with a fraction."""
    if wanted == _TEXT and isinstance(value, int | float) and not isinstance(value, bool):
        name = place[-1] if place else ""
        if name in ("model", "source"):
            return str(value)
        # Of a version's or a topology's last digits nothing is left in a number: `2.60` is 2.6.
        return slug(str(value)) if (name,) in _NAMES else None
    if wanted in (_WHOLE, _COUNT) and isinstance(value, float):
        return round(value)
    if wanted in (_WHOLE, _COUNT, _NUMBER) and isinstance(value, str):
        try:
            number = float(value) if wanted == _NUMBER else int(value)
        except ValueError:
            return None
        return number if isfinite(number) else None
    return None


def _pattern_problem(where: str, value: str, pattern: str) -> Problem:
    form = form_of(pattern)
    return Problem(key=where, value=value, reason=form.reason, allowed=(form.example,), nearest=form.nearest(value))


def _models(model: Any) -> tuple[type[BaseModel], ...]:
    """The models of a union, or the one model itself."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        return (model,)
    return tuple(found for part in get_args(model) for found in _models(part))


def _tags(model: Any) -> tuple[str, ...]:
    return tuple(str(part.model_fields["kind"].default) for part in _models(model))


def _known_keys(model: Any, raw: Plain, place: Path) -> tuple[str, ...]:
    """The keys of the model that stands at `place`."""
    here, found = raw, _of_kind(model, raw)
    for name in place:
        fields = found[0].model_fields if found else {}
        here = here.get(str(name)) if isinstance(here, dict) else None
        found = _of_kind(fields[str(name)].annotation, here) if str(name) in fields else []
    return tuple(found[0].model_fields) if found else ()


def _of_kind(model: Any, raw: Plain) -> list[type[BaseModel]]:
    """Of a union's models those of the kind that `raw` names; where it names none, the first one's."""
    found = _models(model)
    first = found[0].model_fields["kind"].default if found and "kind" in found[0].model_fields else None
    kind = raw.get("kind", first) if isinstance(raw, dict) else first
    return [part for part in found if "kind" not in part.model_fields or part.model_fields["kind"].default == kind]


def _unique(problems: list[Problem]) -> list[Problem]:
    """One problem per key, and none for a list whose items are told."""
    seen: dict[str, Problem] = {}
    for problem in problems:
        seen.setdefault(problem.key, problem)
    return [problem for key, problem in seen.items() if not any(other.startswith(f"{key}[") for other in seen)]

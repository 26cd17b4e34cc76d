"""What can be wrong with a component's arguments whatever they mean, and the error that tells it."""

import re
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import get_args, get_origin

import pulumi
from pulumi.output import Unknown

from infra.stack import Problem
from workloads.spec.nearest import nearest


class ArgumentsError(pulumi.InputPropertiesError, pulumi.RunError):
    """Everything that is wrong with a component's arguments, at once; the keys of `problems` are the arguments.

    A Python program ends with the text and without a traceback; other languages get the properties one by one.
    """

    def __init__(self, component: str, problems: Sequence[Problem]) -> None:
        self.component, self.problems = component, tuple(problems)
        super().__init__(
            f"{component} cannot be made",
            [{"property_path": problem.key, "reason": _reason(problem)} for problem in problems],
        )

    def __str__(self) -> str:
        return "\n".join([f"{self.message}:", *map(str, self.problems)])

    def renamed(self, names: Mapping[str, str]) -> "ArgumentsError":
        """The same for a language that calls the arguments by other names."""

        def called(text: str) -> str:
            return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), text)

        return ArgumentsError(
            self.component,
            [
                problem.model_copy(
                    update={
                        "key": called(problem.key),
                        "reason": called(problem.reason),
                        "allowed": tuple(map(called, problem.allowed)),
                        "nearest": called(problem.nearest) if isinstance(problem.nearest, str) else problem.nearest,
                    }
                )
                for problem in self.problems
            ],
        )


def check_arguments(component: str, args: Mapping[str, object], form: type) -> None:
    """For a component that asks no more of its arguments than their form.

    Raises:
        ArgumentsError: there are `argument_problems`.
    """
    if problems := list(argument_problems(args, form)):
        raise ArgumentsError(component, problems)


def argument_problems(args: Mapping[str, object], form: type) -> Iterator[Problem]:
    """Missing and unknown arguments, and outputs where the preview needs the value.

    Args:
        form: the component's `TypedDict`. Arguments that it types as `pulumi.Input` may be outputs, no others.
    """
    known: dict[str, object] = form.__annotations__
    required: frozenset[str] = getattr(form, "__required_keys__", frozenset())
    for key, type_of_key in known.items():
        value = args.get(key)
        if value is None and key in required:
            yield Problem(key=key, reason="this argument is required and missing")
        elif isinstance(value, pulumi.Output | Awaitable | Unknown) and not _takes_outputs(type_of_key):
            yield Problem(
                key=key,
                reason="an output cannot stand here: it decides what is made, and a preview has to know it",
                allowed=("a plain value",),
            )
        elif isinstance(value, pulumi.Resource):
            yield Problem(key=key, reason="here belongs a property of the resource, not the whole of it")
    for key, value in args.items():
        if key not in known:
            shown = value if isinstance(value, bool | int | float | str) else None
            yield Problem(
                key=key,
                value=shown,
                reason="there is no such argument",
                allowed=tuple(known),
                nearest=nearest(key, tuple(known)),
            )


def _takes_outputs(annotation: object) -> bool:
    return get_origin(annotation) is Awaitable or any(map(_takes_outputs, get_args(annotation)))


def _reason(problem: Problem) -> str:
    """The problem in one line, without key and value, which the engine puts before it."""
    return "; ".join(line.strip() for line in str(problem).splitlines()[1:])

"""Rules about `schedule`: five fields of numbers in their ranges, a time zone that exists, keys that need one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import available_timezones

from infra.stack.problems import Problem
from infra.stack.translate import Entry
from workloads.spec import JobSpec
from workloads.spec.nearest import nearest

TIME_LENGTH = len("-2612030300")
"""What a scheduled run's name has behind `<job>-<run>`: its time to the minute."""


@dataclass(frozen=True)
class Field:
    """One field of a schedule: robfig/cron v3, parser.go, as Kubernetes and KubeRay use it."""

    name: str
    least: int
    most: int
    words: tuple[str, ...] = ()
    """Names of the numbers from `least` on."""

    def refused(self, text: str) -> str | None:
        """The part that is not in range, or no number at all."""
        for part in text.split(","):
            span, slash, step = part.partition("/")
            if slash and not (step.isdigit() and int(step) > 0):
                return part
            if span in ("*", "?"):
                continue
            ends = [self._number(end) for end in span.split("-")]
            known = [end for end in ends if end is not None]
            if len(known) != len(ends) or len(ends) > 2 or known != sorted(known):
                return part
        return None

    def _number(self, text: str) -> int | None:
        if text.lower() in self.words:
            return self.least + self.words.index(text.lower())
        number = int(text) if text.isdigit() and len(text) < 4 else -1
        return number if self.least <= number <= self.most else None


MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIELDS = (
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of the month", 1, 31),
    Field("month", 1, 12, MONTHS),
    Field("day of the week", 0, 6, DAYS),
)


def schedule_problems(entry: Entry[JobSpec]) -> Iterator[Problem]:
    """What is wrong with a job's schedule, and with what is said beside it."""
    schedule, key = entry.text("schedule"), f"{entry.key}.schedule"
    if entry.raw.get("schedule") is None:
        for name in ("time_zone", "keep_runs"):
            if entry.wrote(name):
                reason = f"this is of a schedule, and there is no {key}"
                yield Problem(
                    key=f"{entry.key}.{name}", value=entry.raw[name], reason=reason, allowed=("only with it",)
                )
        return
    if schedule is not None and entry.sound("schedule"):
        yield from _ranges(key, schedule)
    zone = entry.text("time_zone")
    known = available_timezones()
    # A machine without the database of time zones knows none.
    if zone is not None and known and zone not in known and entry.sound("time_zone"):
        close = nearest(zone, sorted(known))
        reason = "there is no such time zone"
        yield Problem(
            key=f"{entry.key}.time_zone",
            value=zone,
            reason=reason,
            allowed=("a zone such as Europe/Berlin",),
            nearest=close,
        )
    if entry.raw.get("wait") is True:
        reason = f"`up` starts no run of a job with {key}, so there is none to wait for"
        yield Problem(key=f"{entry.key}.wait", value=True, reason=reason, allowed=("false",), nearest=False)


def _ranges(key: str, schedule: str) -> Iterator[Problem]:
    if schedule.startswith("@"):
        return
    parts = re.split(" +", schedule.strip())
    for field, text in zip(FIELDS, parts, strict=True):
        wrong = field.refused(text)
        if wrong is not None:
            words = f", or {field.words[0]} to {field.words[-1]}" if field.words else ""
            yield Problem(
                key=key,
                value=schedule,
                reason=f"{wrong} is no {field.name}: {field.least} to {field.most}{words}",
                allowed=("five fields such as 0 3 * * *",),
                # Elsewhere Sunday is also 7.
                nearest=_with_sunday(parts) if field is FIELDS[4] and wrong == "7" else None,
            )
            return


def _with_sunday(parts: list[str]) -> str:
    return " ".join([*parts[:4], "0"])

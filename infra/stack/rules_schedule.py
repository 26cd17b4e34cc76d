"""Rules about `schedule`: five fields of numbers in their ranges, a time zone that exists, keys that need one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from zoneinfo import available_timezones

from infra.stack.problems import Problem
from infra.stack.translate import Entry
from workloads.spec import JobSpec
from workloads.spec.job import ZONE_PATTERN
from workloads.spec.nearest import nearest

LONGEST_MONTHS = {**dict.fromkeys(range(1, 13), 31), 2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
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
        return next((part for part in text.split(",") if self._numbers(part) is None), None)

    def numbers(self, text: str) -> set[int]:
        """The numbers that a right text means."""
        return {number for part in text.split(",") for number in self._numbers(part) or ()}

    def _numbers(self, part: str) -> range | None:
        span, slash, step = part.partition("/")
        if slash and not (step.isdecimal() and len(step) < 4 and int(step) > 0):
            return None
        ends = [self._number(end) for end in span.split("-")]
        if span in ("*", "?"):
            ends = [self.least, self.most]
        elif slash and len(ends) == 1:
            ends = [*ends, self.most]
        known = [end for end in ends if end is not None]
        if len(known) != len(ends) or len(ends) > 2 or known != sorted(known):
            return None
        return range(known[0], known[-1] + 1, int(step) if slash else 1)

    def _number(self, text: str) -> int | None:
        if text.lower() in self.words:
            return self.least + self.words.index(text.lower())
        number = int(text) if text.isdecimal() and text.isascii() and len(text) < 4 else -1
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
    # Some machines have one more, `localtime`, which elsewhere means another or none.
    known = {name for name in available_timezones() if re.fullmatch(ZONE_PATTERN, name)}
    # A machine without the database of time zones knows none.
    if zone is not None and known and zone not in known and entry.sound("time_zone"):
        close = next((name for name in sorted(known) if name.rpartition("/")[2].lower() == zone.lower()), None)
        if close is None and "/" in zone:
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
            close = [_mended(one, part) for one, part in zip(FIELDS, parts, strict=True)]
            good = all(one.refused(part) is None for one, part in zip(FIELDS, close, strict=True))
            yield Problem(
                key=key,
                value=schedule,
                reason=f"{wrong or 'an empty part'} is no {field.name}: {field.least} to {field.most}{words}",
                allowed=("five fields such as 0 3 * * *",),
                nearest=" ".join(close) if good else None,
            )
            return
    yield from _never(key, schedule, parts)


def _mended(field: Field, text: str) -> str:
    """A field without empty parts, and with Sunday as 0: elsewhere it is also 7."""
    parts = [part for part in text.split(",") if part]
    if field is FIELDS[4]:
        sunday = "sun" if "sun" in map(str.lower, parts) else "0"
        parts = [re.sub(r"^(.+)-7$", r"\1-6", part) if part != "7" else sunday for part in parts]
        ranges = any(part.endswith("-7") for part in text.split(","))
        parts += [sunday] if ranges else []
    return ",".join(dict.fromkeys(parts))


def _never(key: str, schedule: str, parts: list[str]) -> Iterator[Problem]:
    """Days that none of the months has. Where days of the week are named too, either is enough."""
    _, _, days, months, weekdays = parts
    if not any(re.fullmatch(r"[*?](/1)?", part) for part in weekdays.split(",")):
        return
    longest = max(LONGEST_MONTHS[month] for month in FIELDS[3].numbers(months))
    first = min(FIELDS[2].numbers(days))
    if first > longest:
        yield Problem(
            key=key,
            value=schedule,
            reason=f"this never comes: the longest of these months has {longest} days",
            allowed=(f"a day from 1 to {longest}", "other months"),
            # The 29th of February comes every fourth year.
            nearest=" ".join([*parts[:2], str(min(longest, 30 if longest > 29 else 28)), *parts[3:]]),
        )

"""Somebody who asks a service all the time, while it is edited."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

PAUSE_S = 0.05
PATIENCE_S = 300.0
"""How long one answer is waited for. It is no limit of Serve's, which has none of its own."""


@dataclass
class Answers:
    """What came back: (status, text, seconds) of each request, in their order; status 0 is a lost connection."""

    found: list[tuple[int, str, float]] = field(default_factory=list)

    @property
    def lost(self) -> list[tuple[int, str, float]]:
        """Those that are not 200."""
        return [one for one in self.found if one[0] != 200]

    @property
    def longest_s(self) -> float:
        """The longest wait for an answer."""
        return max(seconds for _, _, seconds in self.found)


@contextmanager
def asked_all_the_time(url: str) -> Iterator[Answers]:
    """GET `url` again and again until the block is left, and once more then."""
    answers, over = Answers(), threading.Event()
    asker = threading.Thread(target=_ask, args=(url, answers, over))
    asker.start()
    try:
        yield answers
    finally:
        over.set()
        asker.join()


def _ask(url: str, answers: Answers, over: threading.Event) -> None:
    with httpx.Client(timeout=PATIENCE_S, trust_env=False) as client:
        last = False
        while not last:
            last = over.wait(PAUSE_S)
            began = time.monotonic()
            try:
                answer = client.get(url)
                status, text = answer.status_code, answer.text
            except httpx.HTTPError as error:
                status, text = 0, repr(error)
            answers.found.append((status, text, time.monotonic() - began))

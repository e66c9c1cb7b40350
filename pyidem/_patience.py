"""How long, and how often, to look whether another attempt has come to its end."""

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Any

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.5


class Patience:
    """Pauses that grow, up to an end. `sleep` is that of the flavour: it blocks, or is to be awaited."""

    def __init__(self, wait: timedelta, sleep: Callable[[float], Any]) -> None:
        self._seconds = wait.total_seconds()
        self._sleep = sleep
        if self._seconds < 0:
            raise ValueError("wait must not be negative")

    def pauses(self) -> Iterator[Callable[[], Any]]:
        """Return the pauses from now on; the last one ends with the wait."""
        end = monotonic() + self._seconds
        longest = _FIRST_PAUSE
        while (left := end - monotonic()) > 0:
            # at random, so that those who wait for the same do not all look at once
            yield partial(self._sleep, min(left, longest * random.uniform(0.5, 1)))  # noqa: S311 - no secret
            longest = min(longest * 2, _LONGEST_PAUSE)

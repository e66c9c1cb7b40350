"""Whether a call over HTTP is tried again, and when. Nothing here sends, waits or knows a library."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_CONFLICT = 409
# How a server that does not say when to come back tells that the first attempt is at work: this project, and Stripe.
_IN_PROGRESS = frozenset({"idempotency_request_in_progress", "idempotency_key_in_use"})


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, and for how long, a call is tried. Times are in seconds.

    Attributes:
        attempts: how many there are at most, the first included.
        total_time: no attempt begins later than this, and none waits for the network longer than what is left of it.
        first_pause: the longest pause after the first attempt; it doubles with each further one.
        longest_pause: what it grows to. The pause itself is drawn between zero and that ("full jitter").
        longest_retry_after: a server that asks for more is taken at its word: the call ends with that answer.
        statuses: what is tried again. All of them leave open whether the work was done, or say that it was not. A 409
            is tried again as well, where it has Retry-After or says that the first attempt is still at work.
    """

    attempts: int = 8
    total_time: float = 60
    first_pause: float = 0.1
    longest_pause: float = 10
    longest_retry_after: float = 30
    statuses: frozenset[int] = frozenset({408, 429, 500, 502, 503, 504})

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if self.attempts < 1:
            raise ValueError("there is at least one attempt")
        if self.total_time <= 0 or min(self.first_pause, self.longest_pause, self.longest_retry_after) < 0:
            raise ValueError("times are not negative, and the total is above zero")


@dataclass(frozen=True, slots=True)
class Idempotency:
    """What became of a call.

    Attributes:
        key: the key that every attempt carried, as it was sent.
        attempts: how often the request was sent.
        replayed: whether the answer is that of an earlier attempt.
        body_omitted: whether that answer's body was too large to be kept, and is missing.
    """

    key: str
    attempts: int
    replayed: bool
    body_omitted: bool


class Call:
    """One call and the attempts at it.

    Args:
        clock: seconds that only ever grow.
        now: seconds since the epoch, for a Retry-After that is a date.
        random: between zero and one.
    """

    def __init__(
        self,
        key: str,
        retries: Retries,
        *,
        clock: Callable[[], float],
        now: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self.key = key
        self.attempts = 0
        self._retries = retries
        self._clock = clock
        self._now = now
        self._random = random
        self._began = clock()

    def begin_attempt(self) -> float:
        """Count an attempt and return how many seconds are left for it."""
        self.attempts += 1
        return self._retries.total_time - (self._clock() - self._began)

    def pause_after_error(self) -> float | None:
        """Return how long to wait after an attempt without an answer; None: there is no other."""
        return self._pause(0)

    def pause_after(self, status: int, headers: Mapping[str, str], body: bytes) -> float | None:
        """Return how long to wait after an answer; None: this is the answer."""
        asked = retry_after(headers, self._now())
        again = status in self._retries.statuses or (
            status == _CONFLICT and (asked is not None or says_in_progress(body))
        )
        if is_replay(headers) or not again or (asked or 0) > self._retries.longest_retry_after:
            return None
        return self._pause(asked or 0)

    def result(self, headers: Mapping[str, str]) -> Idempotency:
        """Sum up, with the headers of the answer."""
        omitted = headers.get("Idempotency-Body-Omitted") == "true"
        return Idempotency(self.key, self.attempts, is_replay(headers), omitted)

    def _pause(self, at_least: float) -> float | None:
        """Add the jittered back-off to what the server asked for, so that its clients do not come back as one."""
        settings = self._retries
        if self.attempts >= settings.attempts:
            return None
        # 2.0 ** 1024 would overflow; long before that the longest pause is reached
        longest = min(settings.longest_pause, settings.first_pause * 2.0 ** min(self.attempts - 1, 64))
        pause = at_least + self._random() * longest
        return pause if self._clock() - self._began + pause < settings.total_time else None


def is_replay(headers: Mapping[str, str]) -> bool:
    """Tell whether an answer is marked as that of an earlier attempt, in either dialect."""
    return "true" in (headers.get("Idempotency-Replayed"), headers.get("Idempotent-Replayed"))


def says_in_progress(body: bytes) -> bool:
    """Tell whether an answer's body names one of the codes for a request that another attempt is at work on."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return False
    match document:
        case {"code": str(code)} | {"error": {"code": str(code)}}:
            return code in _IN_PROGRESS
    return False


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that Retry-After asks for, be it a number or a date; None where there is none.

    A date is compared with the server's own, so that a clock that is wrong here does no harm.
    """
    value = headers.get("Retry-After", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    when = _date(value)
    if when is None:
        return None
    return max(0.0, when - (_date(headers.get("Date", "")) or now))


def _date(value: str) -> float | None:
    try:
        when: datetime = parsedate_to_datetime(value)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()

"""Stop in good order on SIGTERM and SIGINT."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first signal; the second one does what it always did.

    A handler that the surroundings have put there, a web server's for instance, is called as well. In another thread
    than the main one, where Python allows no handlers, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        restore()
        stop()
        handler = before[number]
        if callable(handler) and not _ends_at_once(handler):
            handler(number, frame)

    for number in _SIGNALS:
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        restore()


def _ends_at_once(handler: Any) -> bool:
    """Tell whether this is Python's own handler of SIGINT, or that of asyncio.run: they interrupt what is running."""
    owner = getattr(getattr(handler, "func", None), "__self__", None)
    return handler is signal.default_int_handler or isinstance(owner, asyncio.Runner)

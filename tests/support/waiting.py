"""Wait for a state by looking at it, never by sleeping and hoping."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.005


def wait_until(condition: Callable[[], bool], what: str, *, timeout: float = 30) -> None:
    """Return as soon as the condition holds; fail after ``timeout`` seconds, naming what did not come."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain for {what}")
        time.sleep(_POLL_SECONDS)


class Background(Generic[T]):
    """A call that runs in a thread of its own."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._future: Future[T] = Future()
        self._thread = threading.Thread(target=self._run, args=[call], daemon=True)
        self._thread.start()

    def done(self) -> bool:
        """Tell whether the call has ended."""
        return self._future.done()

    def result(self, timeout: float = 30) -> T:
        """Return what the call returned, or raise what it raised; TimeoutError after ``timeout`` seconds."""
        return self._future.result(timeout)

    def _run(self, call: Callable[[], T]) -> None:
        try:
            self._future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is asked for
            self._future.set_exception(error)

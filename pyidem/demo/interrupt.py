"""A signal to end, as an orderly end."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine. The first signal to end cancels it, and becomes KeyboardInterrupt when it has cleaned up.

    Further ones do not disturb that. A signal that is ignored already stays so: nohup, for one, wants it.
    """
    try:
        return asyncio.run(_attended(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _attended(work: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    attended = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]

    def interrupt() -> None:
        for number in attended:
            loop.add_signal_handler(number, lambda: None)
        task.cancel()

    for number in attended:
        loop.add_signal_handler(number, interrupt)
    return await work

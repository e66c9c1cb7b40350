"""Signals stop a sweeper in good order, and whoever else waits for them hears them too."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pyidem._signals import stopping

SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    assert {number: signal.getsignal(number) for number in SIGNALS} == before


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_stops_and_the_second_is_as_before(number: int) -> None:
    before, stops = signal.getsignal(number), []
    with stopping(lambda: stops.append(1)):
        assert signal.getsignal(number) != before
        os.kill(os.getpid(), number)
        assert stops == [1]
        assert signal.getsignal(number) == before


@pytest.mark.parametrize("number", SIGNALS)
def test_a_handler_of_the_surroundings_is_called_as_well(number: int) -> None:
    heard: list[Any] = []
    before = signal.signal(number, lambda number, _: heard.append(number))
    try:
        with stopping(lambda: heard.append("stop")):
            os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)
    assert heard == ["stop", number]


def test_under_asyncio_an_interrupt_stops_and_cancels_nothing() -> None:
    async def work() -> str:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        with stopping(lambda: loop.call_soon_threadsafe(stopped.set)):
            os.kill(os.getpid(), signal.SIGINT)
            await stopped.wait()
            await asyncio.sleep(0)
        return "finished"

    assert asyncio.run(work()) == "finished"


def test_in_another_thread_nothing_is_handled() -> None:
    seen: list[Any] = []

    def work() -> None:
        with stopping(lambda: None):
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]

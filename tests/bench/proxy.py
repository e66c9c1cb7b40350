"""A network between a client and its server: every packet arrives a little later, and round trips are counted.

Run as a program it says where it listens, and ends with its standard input.
"""

import argparse
import asyncio
import selectors
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

DELAY = 0.0005
BUFFER = 1 << 16


class Proxy:
    """Carries each connection to a server, and each packet `delay` seconds later.

    Packets keep their order. A round trip begins when a client speaks after it has listened.
    """

    def __init__(self, host: str, port: int, delay: float = DELAY) -> None:
        self.round_trips = 0
        self._target = (host, port)
        self._delay = delay
        self._server: asyncio.Server | None = None
        self._carried: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen on a free port of loopback and return it."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Listen no more, and break off what is carried."""
        assert self._server is not None
        self._server.close()
        for task in self._carried:
            task.cancel()
        await asyncio.gather(*self._carried, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._carried.add(task)
        task.add_done_callback(self._carried.discard)
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
            return
        listened = True

        def speaks() -> None:
            nonlocal listened
            self.round_trips += listened
            listened = False

        def listens() -> None:
            nonlocal listened
            listened = True

        try:
            # What stop() breaks off ends here: asyncio would report each as a fault.
            with suppress(asyncio.CancelledError):
                await asyncio.gather(
                    self._carry(reader, server_writer, speaks), self._carry(server_reader, writer, listens)
                )
        finally:
            for end in (writer, server_writer):
                end.close()
                with suppress(ConnectionError):
                    await end.wait_closed()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, notice: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            while packet := await reader.read(BUFFER):
                notice()
                if self._delay:
                    loop.call_later(self._delay, writer.write, packet)
                else:
                    writer.write(packet)
        # after what is still under way
        await asyncio.sleep(self._delay)
        writer.close()


@contextmanager
def delaying(host: str, port: int, delay: float = DELAY) -> Iterator[int]:
    """Run a proxy in a process of its own; yield the port to connect to."""
    command = [sys.executable, "-m", "tests.bench.proxy", host, str(port), str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


async def _main(options: argparse.Namespace) -> None:
    proxy = Proxy(options.host, options.port, options.delay)
    print(await proxy.start(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await proxy.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("delay", type=float)
    # select() waits for microseconds, where epoll rounds up to whole milliseconds
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_main(parser.parse_args()))

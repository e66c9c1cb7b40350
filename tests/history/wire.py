"""A proxy that loses connections: at any byte, in either direction, and where a COMMIT is answered."""

import asyncio
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Self

_COMMITTING = (b"commit", b"COMMIT", b"idem.run(")


@dataclass(frozen=True)
class Fate:
    """What becomes of a connection.

    It is cut after so many bytes of what the client sends (``up``) or is sent (``down``), or, ``unacknowledged``, when
    the answer to its so-manieth COMMIT is on its way.
    """

    up: float = float("inf")
    down: float = float("inf")
    unacknowledged: float = float("inf")

    @classmethod
    def draw(cls, rng: Random) -> Self:
        """Draw one: half of them live as long as they like."""
        match rng.choice(["none", "none", "none", "up", "down", "unacknowledged"]):
            case "up":
                return cls(up=rng.randrange(20_000))
            case "down":
                return cls(down=rng.randrange(40_000))
            case "unacknowledged":
                return cls(unacknowledged=rng.randrange(1, 20))
        return cls()


class Wire:
    """Listens on a free port and leads to a server, in a thread of its own.

    Attributes:
        port: where it listens, on 127.0.0.1.
        cut: how many connections it has cut, by reason.
    """

    def __init__(self, target: int, rng: Random) -> None:
        self.port = 0
        self.target = target
        self.cut: Counter[str] = Counter()
        self._rng = rng
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire", daemon=True)

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        """Cut every connection and end."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        # A connection that is just being accepted becomes a task meanwhile.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # in which the last transports end

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._carry(reader, writer, Fate.draw(self._rng)))
        self._tasks.add(task)  # asyncio itself holds on to no task
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fate: Fate) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
            return
        line = _Line(fate)
        ways = [asyncio.ensure_future(line.up(reader, back)), asyncio.ensure_future(line.down(there, writer))]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            self.cut.update(reason for way in done if not way.cancelled() and (reason := way.result()))
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            writer.transport.abort()
            back.transport.abort()


class _Line:
    """The two ways of a connection. Each returns why it was cut, or None where one of the ends has hung up."""

    def __init__(self, fate: Fate) -> None:
        self._fate = fate
        self._commits = 0

    async def up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str | None:
        left = self._fate.up
        with suppress(OSError):
            while data := await reader.read(65536):
                self._commits += any(word in data for word in _COMMITTING)
                writer.write(data[: int(min(left, len(data)))])
                await writer.drain()
                left -= len(data)
                if left < 0:
                    return "request cut"
        return None

    async def down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str | None:
        left = self._fate.down
        with suppress(OSError):
            while data := await reader.read(65536):
                if self._commits >= self._fate.unacknowledged:
                    return "acknowledgement lost"
                writer.write(data[: int(min(left, len(data)))])
                await writer.drain()
                left -= len(data)
                if left < 0:
                    return "answer cut"
        return None

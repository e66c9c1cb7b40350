"""A proxy on a hostile network.

It loses requests, loses or cuts the answers after the work was done, delays, and hands one request to several processes
at the same moment. Without hazards it just spreads requests over the processes.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Self, TypeAlias

import h11

from pyidem.demo.fate import HEADER, Fate
from pyidem.demo.wire import Answer, BrokenOff, Request, encode, exchange, receive_request


@dataclass(frozen=True, slots=True)
class Hazards:
    """How likely each misfortune is, for one attempt. A delay takes so many seconds.

    Fates meet the first attempt at a key alone: a process that dies takes the attempts of others along.
    """

    request_lost: float = 0
    answer_lost: float = 0
    answer_cut: float = 0
    duplicated: float = 0
    delayed: float = 0
    delay: float = 0
    fates: Mapping[Fate, float] = field(default_factory=dict)


class Passage(StrEnum):
    """How far one attempt came. `BROKEN_OFF`: whoever had to answer has died on the way."""

    DELIVERED = "delivered"
    REQUEST_LOST = "request_lost"
    ANSWER_LOST = "answer_lost"
    ANSWER_CUT = "answer_cut"
    BROKEN_OFF = "broken_off"


Observe: TypeAlias = Callable[[Request, Answer | None, Passage, bool], None]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What is going to happen to a request, or to one of its copies."""

    port: int
    passage: Passage
    delay: float
    fate: Fate | None
    duplicate: bool


class Proxy:
    """Carries requests to the processes that listen on these ports, after a fashion.

    What befalls the n-th attempt at a key depends on the seed alone.

    Args:
        observe: is told of every attempt, with the answer even if that is lost on the way, and whether it is a copy.
        port: where to listen; any free port, if it is zero.

    Attributes:
        port: where it listens, on 127.0.0.1.
    """

    def __init__(self, ports: Sequence[int], hazards: Hazards, seed: str, observe: Observe, *, port: int = 0) -> None:
        self.port = port
        self._ports = ports
        self._hazards = hazards
        self._seed = seed
        self._observe = observe
        self._seen: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=512)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            with suppress(OSError, h11.RemoteProtocolError, BrokenOff):  # then there is nobody to answer
                while (request := await receive_request(connection, reader)) is not None:
                    answer, passage = await self._carry(request)
                    sent = encode(connection, answer)
                    if passage is Passage.ANSWER_CUT:
                        writer.write(sent[: len(sent) - len(answer.body) // 2 - 1])
                        break
                    writer.write(sent)
                    await writer.drain()
                    if connection.our_state is not h11.DONE:
                        break
                    connection.start_next_cycle()
        finally:
            writer.close()

    async def _carry(self, request: Request) -> tuple[Answer, Passage]:
        """Return the first answer that comes through. Raises BrokenOff if none does."""
        attempts = self._draw(request)
        carried = await asyncio.gather(*(self._attempt(request, attempt) for attempt in attempts))
        for answer, passage in carried:
            if answer is not None and passage in (Passage.DELIVERED, Passage.ANSWER_CUT):
                return answer, passage
        raise BrokenOff

    async def _attempt(self, request: Request, attempt: _Attempt) -> tuple[Answer | None, Passage]:
        answer, passage = None, attempt.passage
        await asyncio.sleep(attempt.delay)
        if passage is not Passage.REQUEST_LOST:
            sent = request if attempt.fate is None else request.plus(HEADER, attempt.fate)
            try:
                answer = await exchange(attempt.port, sent)
            except BrokenOff:
                passage = Passage.BROKEN_OFF
        self._observe(request, answer, passage, attempt.duplicate)
        return answer, passage

    def _draw(self, request: Request) -> list[_Attempt]:
        name = f"{request.header('Authorization')} {request.header('Idempotency-Key')}"
        self._seen[name] += 1
        rng = Random(f"{self._seed}/{name}/{self._seen[name]}")  # noqa: S311 - chance, not secrets
        copies = rng.choice([2, 3]) if rng.random() < self._hazards.duplicated else 1
        return [
            _Attempt(
                port,
                passage=self._draw_passage(rng),
                delay=self._hazards.delay if rng.random() < self._hazards.delayed else 0,
                fate=self._draw_fate(rng) if self._seen[name] == 1 else None,
                duplicate=index > 0,
            )
            for index, port in enumerate(rng.sample(self._ports, min(copies, len(self._ports))))
        ]

    def _draw_passage(self, rng: Random) -> Passage:
        likelihoods = {
            Passage.REQUEST_LOST: self._hazards.request_lost,
            Passage.ANSWER_LOST: self._hazards.answer_lost,
            Passage.ANSWER_CUT: self._hazards.answer_cut,
        }
        return next((one for one, likelihood in likelihoods.items() if rng.random() < likelihood), Passage.DELIVERED)

    def _draw_fate(self, rng: Random) -> Fate | None:
        return next((fate for fate, likelihood in self._hazards.fates.items() if rng.random() < likelihood), None)

"""The clients: each wants its operations done, and leaves it to `pyidem.httpx` to ask until there is an answer."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from random import Random

import httpx

from pyidem.demo.operations import Operation
from pyidem.demo.record import Heard, Record
from pyidem.httpx import AsyncIdempotentTransport, Retries

_PATIENCE_SECONDS = 3
# Patient, so that nothing is given up where the machine is slow.
_RETRIES = Retries(attempts=1000, total_time=600, first_pause=0.02, longest_pause=0.5)
_REUSE_LIKELIHOOD = 0.1


class Clients:
    """A number of clients at work at the same time.

    Attributes:
        answered: how many operations have their answer.
        unanswered: requests that were given up without an answer.
        retried: how many calls needed more than one attempt.
        most_attempts: how often the most unlucky request was sent.
    """

    def __init__(self, port: int, record: Record, seed: int) -> None:
        self.answered = 0
        self.unanswered: list[Operation] = []
        self.retried = 0
        self.most_attempts = 0
        self._port = port
        self._record = record
        self._seed = seed

    async def perform(self, operations: Iterable[Operation], count: int) -> None:
        """Have all operations done, by so many clients."""
        waiting = iter(operations)
        async with asyncio.TaskGroup() as clients:
            for number in range(count):
                clients.create_task(self._work(waiting, Random(f"{self._seed}/{number}")))  # noqa: S311 - chance

    async def _work(self, waiting: Iterator[Operation], rng: Random) -> None:
        async with self._open(rng) as http:
            for operation in waiting:
                await self._perform(http, operation)
                self.answered += 1

    @asynccontextmanager
    async def _open(self, rng: Random) -> AsyncIterator[httpx.AsyncClient]:
        transport = AsyncIdempotentTransport(httpx.AsyncHTTPTransport(), _RETRIES, random=rng.random)
        url = f"http://127.0.0.1:{self._port}"
        async with httpx.AsyncClient(transport=transport, base_url=url, timeout=_PATIENCE_SECONDS) as http:
            yield http

    async def _perform(self, http: httpx.AsyncClient, operation: Operation) -> None:
        """Ask until answered; some then use the key once more, for another amount."""
        rng = Random(f"{self._seed}/{operation.order}")  # noqa: S311 - chance, not secrets
        if await self._ask(http, operation, forged=False) and rng.random() < _REUSE_LIKELIHOOD:
            await self._ask(http, operation, forged=True)

    async def _ask(self, http: httpx.AsyncClient, operation: Operation, *, forged: bool) -> bool:
        headers = {"Authorization": operation.authorization, "Idempotency-Key": operation.key}
        body = operation.forged_body if forged else operation.body
        try:
            response = await http.post(
                operation.path, content=body, headers={**headers, "Content-Type": "application/json"}
            )
        except httpx.TransportError:
            self.unanswered.append(operation)
            return False
        attempts = response.extensions["idempotency"].attempts
        self.retried += attempts > 1
        self.most_attempts = max(self.most_attempts, attempts)
        heard = Heard.of_response(response)
        self._record.note(operation, heard, forged=forged)
        if not heard.final:
            self.unanswered.append(operation)
        return heard.final

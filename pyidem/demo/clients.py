"""The clients: each wants its operations done and asks until it has an answer."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from random import Random

from pyidem.demo.network import Network
from pyidem.demo.operations import Operation

_PATIENCE_SECONDS = 60
_FIRST_DELAY = 0.02
_LONGEST_DELAY = 0.5
_REUSE_LIKELIHOOD = 0.1


class Clients:
    """A number of clients at work at the same time.

    They back off, with jitter, but ask again sooner than Retry-After says: a service has to bear that.

    Attributes:
        unanswered: requests that were given up without an answer.
    """

    def __init__(self, network: Network, count: int, seed: int) -> None:
        self.unanswered: list[Operation] = []
        self._network = network
        self._count = count
        self._seed = seed
        self._stopping = threading.Event()

    def perform(self, operations: list[Operation]) -> Iterator[int]:
        """Have all operations done; yield, a few times in a second, how many are."""
        with ThreadPoolExecutor(self._count, thread_name_prefix="client") as clients:
            try:
                pending: set[Future[None]] = {clients.submit(self._perform, operation) for operation in operations}
                while pending:
                    done, pending = wait(pending, timeout=0.2)
                    for future in done:
                        future.result()
                    yield len(operations) - len(pending)
            finally:
                self._stopping.set()
                clients.shutdown(cancel_futures=True)

    def _perform(self, operation: Operation) -> None:
        """Ask until answered; some clients then use the key once more, for another amount."""
        rng = Random(f"{self._seed}/{operation.order}")  # noqa: S311 - chance, not secrets
        if self._ask(operation, rng) and rng.random() < _REUSE_LIKELIHOOD:
            self._ask(operation.forge(), rng)

    def _ask(self, operation: Operation, rng: Random) -> bool:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        delay = _FIRST_DELAY
        while self._network.send(operation, rng) is None:
            if time.monotonic() > deadline or self._stopping.wait(rng.uniform(delay / 2, delay)):
                self.unanswered.append(operation)
                return False
            delay = min(delay * 2, _LONGEST_DELAY)
        return True

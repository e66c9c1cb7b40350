"""The operations that the clients want done."""

import json
from dataclasses import dataclass
from random import Random

from pyidem.demo.service import CLIENTS, Method

_CARD_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class Operation:
    """One refund that a shop wants, once. The same key of two shops is two operations."""

    token: str
    key: str
    order: str
    amount: int
    method: Method

    @property
    def scope(self) -> str:
        """Whose key it is."""
        return CLIENTS[self.token]

    @property
    def name(self) -> str:
        """Scope and key, for people."""
        return f"{self.scope}/{self.key}"

    @property
    def authorization(self) -> str:
        """How its shop says who it is."""
        return f"Bearer {self.token}"

    @property
    def path(self) -> str:
        """Where it is asked for."""
        return f"/refunds/{self.method}"

    @property
    def body(self) -> bytes:
        """What is sent."""
        return self._body(self.amount)

    @property
    def forged_body(self) -> bytes:
        """A request for another amount, which must be refused under the same key."""
        return self._body(self.amount + 1)

    def _body(self, amount: int) -> bytes:
        return json.dumps({"order": self.order, "amount": amount}).encode()


def plan(count: int, rng: Random) -> list[Operation]:
    """Return so many operations. The shops number their refunds alike, each for itself."""
    tokens = list(CLIENTS)
    return [
        Operation(
            token=tokens[number % len(tokens)],
            key=f"refund-{number // len(tokens):05}",
            order=f"order-{number:05}",
            amount=rng.randint(1, 50_000),
            method="card" if rng.random() < _CARD_SHARE else "credit",
        )
        for number in range(count)
    ]


def plan_unknown(count: int, rng: Random) -> list[Operation]:
    """Return so many refunds to bank accounts that the provider takes its time for."""
    tokens = list(CLIENTS)
    return [
        Operation(
            token=tokens[number % len(tokens)],
            key=f"bank-{number // len(tokens):05}",
            order=f"slow-{number:05}",
            amount=rng.randint(1, 50_000),
            method="bank",
        )
        for number in range(count)
    ]

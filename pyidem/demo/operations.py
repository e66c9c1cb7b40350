"""The operations that the clients want done."""

import json
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

_SCOPES = ("shop-north", "shop-south", "shop-west")
_CARD_SHARE = 0.35


@dataclass(frozen=True, slots=True)
class Operation:
    """One refund that a shop wants, once. The same key in two scopes is two operations.

    `forged_cents` makes it another request under the same key, which must be refused.
    """

    scope: str
    key: str
    order: str
    cents: int
    method: Literal["credit", "card"]
    forged_cents: int | None = None

    @property
    def name(self) -> str:
        """Scope and key, for people."""
        return f"{self.scope}/{self.key}"

    @property
    def forged(self) -> bool:
        """Whether it misuses the key of another request."""
        return self.forged_cents is not None

    @property
    def original(self) -> "Operation":
        """The operation that the key belongs to."""
        return replace(self, forged_cents=None)

    def forge(self) -> "Operation":
        """Return a request for another amount under the same key."""
        return replace(self, forged_cents=self.cents + 1)

    def body(self) -> bytes:
        """Return what is sent."""
        cents = self.cents if self.forged_cents is None else self.forged_cents
        return json.dumps({"order": self.order, "cents": cents, "method": self.method}).encode()


def plan(count: int, rng: Random) -> list[Operation]:
    """Return so many operations. The shops number their refunds alike, each for itself."""
    return [
        Operation(
            scope=_SCOPES[number % len(_SCOPES)],
            key=f"refund-{number // len(_SCOPES):05}",
            order=f"order-{number:05}",
            cents=rng.randint(1, 50_000),
            method="card" if rng.random() < _CARD_SHARE else "credit",
        )
        for number in range(count)
    ]

"""What clients and checker have to agree on: the keys, their policies, and how an answer names its attempt."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

SCOPE = "storm"
HOUR = 3600 * 1_000_000


@dataclass(frozen=True)
class Family:
    """Keys under one policy; times are in microseconds.

    ``keys`` is how many of them are in use at a time. Where they ``move`` the set does, one key every 100 ms, so that
    each is used for a short while and its answer is kept to the end.
    """

    name: str
    on_lapse: str
    ttl: int
    min_retention: int
    tombstone: int
    keys: int
    move: bool = False
    lease: int = 300_000

    @property
    def policy(self) -> dict[str, Any]:
        """The columns of `idem.policies`."""
        lengths = {"ttl", "lease", "min_retention", "tombstone"}
        columns = {name: timedelta(microseconds=getattr(self, name)) for name in sorted(lengths)}
        return {"on_lapse": self.on_lapse, **columns}


# The owners of `stuck` keys walk away, and nobody ever settles what became of them.
FAMILIES = {
    family.name: family
    for family in (
        Family("again", "retry", ttl=2_500_000, min_retention=1_000_000, tombstone=0, keys=3),
        Family("held", "hold", ttl=2_500_000, min_retention=1_000_000, tombstone=1_500_000, keys=3),
        Family("kept", "retry", ttl=HOUR, min_retention=HOUR, tombstone=0, keys=6, move=True),
        Family("web", "retry", ttl=2_500_000, min_retention=1_000_000, tombstone=0, keys=3),
        Family("stuck", "hold", ttl=1_000_000, min_retention=500_000, tombstone=0, keys=2, move=True),
        Family("mark", "hold", ttl=2_500_000, min_retention=1_000_000, tombstone=0, keys=3),
    )
}


def family_of(key: str) -> Family:
    """Return the family that the name of a key begins with."""
    return FAMILIES[key.partition("-")[0]]


def op_in(body: bytes) -> str:
    """Return the attempt that gave this answer."""
    return body.partition(b" ")[0].decode()

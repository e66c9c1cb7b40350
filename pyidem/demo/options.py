"""What the user may choose, apart from what it does: the command line is shown without any of that loaded."""

import secrets
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a run.

    `kill_every` is in seconds, on average; zero kills no worker at random. `by_bank` is the size of the second part.
    """

    operations: int = 400
    workers: int = 4
    clients: int = 40
    kill_every: float = 2.0
    seed: int = 0
    by_bank: int = 12

    @property
    def total(self) -> int:
        """How many operations there are in both parts."""
        return self.operations + self.by_bank


def new_seed() -> int:
    """Return a seed for a run that is to be unlike others."""
    return secrets.randbelow(1_000_000)

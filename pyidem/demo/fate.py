"""What befalls a worker in the middle of a request.

The network may send a fate along with a request. The worker then dies as by kill -9, or loses the provider's answer, at
exactly that point.
"""

import os
import signal
from enum import StrEnum

from pyidem import Idem
from pyidem.demo.service import Database, PaymentProvider, RefundRequest, RefundService


class Fate(StrEnum):
    """What becomes of the attempt that carries it, once it has reached that point."""

    DIE_IN_TRANSACTION = "die-in-transaction"
    DIE_AFTER_PROVIDER = "die-after-provider"
    LOSE_PROVIDER = "lose-provider"


class ProviderLost(Exception):
    """The provider did not answer: nobody knows whether it has done what it was asked to."""


class FatefulProvider:
    """The provider, over a connection that fails just after it has done its part."""

    def __init__(self, provider: PaymentProvider, fate: str | None) -> None:
        self._provider = provider
        self._fate = fate

    def transfer(self, order: str, cents: int, *, idempotency_key: str) -> str:
        """Transfer, then meet the fate."""
        transfer = self._provider.transfer(order, cents, idempotency_key=idempotency_key)
        if self._fate == Fate.DIE_AFTER_PROVIDER:
            die()
        if self._fate == Fate.LOSE_PROVIDER:
            raise ProviderLost
        return transfer


class FatefulService(RefundService):
    """The service, in a process that dies in the middle of a transaction."""

    def __init__(self, idem: Idem[Database], provider: PaymentProvider, fate: str | None) -> None:
        super().__init__(idem, FatefulProvider(provider, fate))
        self._fate = fate

    def record(self, connection: Database, request: RefundRequest, transfer: str | None = None) -> int:
        """Write the refund, then meet the fate before it is committed."""
        refund = super().record(connection, request, transfer)
        if self._fate == Fate.DIE_IN_TRANSACTION:
            die()
        return refund


def die() -> None:
    """End this process as kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)

"""What befalls a worker in the middle of a request.

The proxy may send a fate along with a request. The worker then dies, as by kill -9, at exactly that point.
"""

import os
import signal
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, Final, TypeAlias

from pyidem.demo.service import Books, Database, Method, PaymentProvider, Refund, RefundRequest

HEADER: Final = "Fate"

App: TypeAlias = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]

_fate: ContextVar[str | None] = ContextVar("fate", default=None)


class Fate(StrEnum):
    """What becomes of the attempt that carries it, once it has reached that point."""

    DIE_IN_TRANSACTION = "die-in-transaction"
    DIE_AFTER_PROVIDER = "die-after-provider"


def fateful(app: App) -> App:
    """Wrap an application so that each request brings its fate along."""

    async def middleware(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        fate = headers.get(HEADER.lower().encode())
        _fate.set(fate.decode() if fate else None)
        await app(scope, receive, send)

    return middleware


class FatefulProvider:
    """The provider, as asked by a process that dies when it has the answer."""

    def __init__(self, provider: PaymentProvider) -> None:
        self._provider = provider

    async def transfer(self, order: str, amount: int, *, idempotency_key: str) -> str:
        """Transfer, then meet the fate."""
        transfer = await self._provider.transfer(order, amount, idempotency_key=idempotency_key)
        _meet(Fate.DIE_AFTER_PROVIDER)
        return transfer


class FatefulBooks(Books):
    """The books, as kept by a process that dies in the middle of a transaction."""

    async def enter(
        self, connection: Database, method: Method, request: RefundRequest, transfer: str | None = None
    ) -> Refund:
        """Write the refund, then meet the fate before it is committed."""
        refund = await super().enter(connection, method, request, transfer)
        _meet(Fate.DIE_IN_TRANSACTION)
        return refund


def _meet(fate: Fate) -> None:
    """End this process as kill -9 does, if that is its fate."""
    if _fate.get() == fate:
        os.kill(os.getpid(), signal.SIGKILL)

"""The refund service: how an application uses pyidem, in both modes.

Every request names its operation with an idempotency key. It may arrive many times, at several processes at once, and
any of them may die at any point: the refund is made once, and whoever asks gets the same answer, byte for byte.
"""

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, Self, TypeAlias

from psycopg import Connection

from pyidem import Idem, IdempotencyError, Response

Database: TypeAlias = Connection[Any]


class PaymentProvider(Protocol):
    """The outside world: it honours an idempotency key of its own."""

    def transfer(self, order: str, cents: int, *, idempotency_key: str) -> str:
        """Pay an amount back to the card of an order and return the transfer's name."""


@dataclass(frozen=True, slots=True)
class RefundRequest:
    """What a client asks for."""

    order: str
    cents: int
    method: Literal["credit", "card"]

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Read the JSON body of a request. Raises ValueError where it is none."""
        match json.loads(body):
            case {"order": str(order), "cents": int(cents), "method": "credit" | "card" as method, **more} if (
                cents > 0 and cents is not True and not more
            ):
                return cls(order, cents, method)
        raise ValueError("a refund request has order, cents (above zero) and method (credit or card), and no more")

    def fingerprint(self) -> bytes:
        """Return a digest of all that makes this request what it is: the same key must come with the same."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).digest()


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the client. `replayed` is for its information: the rest is the same either way."""

    response: Response
    replayed: bool = False


class RefundService:
    """Refunds orders, as store credit or through the payment provider."""

    def __init__(self, idem: Idem[Database], provider: PaymentProvider) -> None:
        self._idem = idem
        self._provider = provider

    def refund(self, client: str, key: str, request: RefundRequest) -> Answer:
        """Answer one request of a client, which is the scope of its keys."""
        try:
            if request.method == "credit":
                return self._to_credit(client, key, request)
            return self._to_card(client, key, request)
        except IdempotencyError as error:
            if error.problem is None:  # not the client's to see
                raise
            return Answer(_problem(error))

    def _to_credit(self, client: str, key: str, request: RefundRequest) -> Answer:
        """Do the work in this database: key, refund and answer commit together, or nothing happened."""
        with self._idem.atomic(client, key, fingerprint=request.fingerprint(), policy="store_credit") as op:
            if op.started:
                refund = self.record(op.connection, request)
                op.complete(201, _as_json(refund, request), headers=[("Location", f"/refunds/{refund}")])
        return Answer(op.response, op.outcome == "replay")

    def _to_card(self, client: str, key: str, request: RefundRequest) -> Answer:
        """Do the work elsewhere: the key is reserved first, and passed on in a form that never changes.

        If this process dies on the way, the next attempt asks the provider again, under the same downstream key.
        """
        with self._idem.leased(
            client, key, fingerprint=request.fingerprint(), policy="card_refund", heartbeat=True
        ) as op:
            if op.started:
                downstream_key = str(op.downstream_key())
                transfer = self._provider.transfer(request.order, request.cents, idempotency_key=downstream_key)
                with op.transaction() as connection:
                    refund = self.record(connection, request, transfer)
                    op.complete(201, _as_json(refund, request), headers=[("Location", f"/refunds/{refund}")])
        return Answer(op.response, op.outcome == "replay")

    def record(self, connection: Database, request: RefundRequest, transfer: str | None = None) -> int:
        """Write the refund into the books and return its number."""
        row = connection.execute(
            "insert into refund (order_no, cents, method, transfer) values (%s, %s, %s, %s) returning id",
            [request.order, request.cents, request.method, transfer],
        ).fetchone()
        assert row is not None
        return int(row[0])


def _as_json(refund: int, request: RefundRequest) -> dict[str, Any]:
    return {"refund": refund, **asdict(request)}


def _problem(error: IdempotencyError) -> Response:
    """Return the problem document of an error as a response, with Retry-After where it may help to try again."""
    headers = [("Content-Type", "application/problem+json")]
    retry_after = getattr(error, "retry_after", None)
    if retry_after is not None:
        headers.append(("Retry-After", str(math.ceil(retry_after.total_seconds()))))
    return Response.of(error.status, error.problem, headers)

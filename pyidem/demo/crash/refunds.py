"""The shop: a refund is a transfer at the bank and a row in the shop's books, one of each for every order."""

import os
from typing import Any, Final, TypeAlias

import psycopg

from pyidem import Idem, LeasedOp, Response
from pyidem.demo.crash.bank import BankClient

BANK_PORT: Final = "BANK_PORT"
POLICY: Final = "bank_refund"

# Nothing here keeps a refund single but its idempotency key. A real lease would be longer.
TABLES: Final = """
create table refund (
    id bigint generated always as identity primary key,
    order_no text not null,
    cents bigint not null,
    transfer text not null
);
insert into idem.policies (name, on_lapse, lease) values ('bank_refund', 'hold', '1 second');
"""

Operation: TypeAlias = LeasedOp[psycopg.Connection[Any]]


def refund(idem: Idem[psycopg.Connection[Any]], client: str, key: str, order: str, cents: int) -> Response:
    """Refund an order once, however often it is asked for."""
    state = {"order": order, "cents": cents}
    with idem.leased(client, key, state=state, policy=POLICY, heartbeat=True) as op:
        if op.started:
            _enter(op, _bank().transfer(order, cents, idempotency_key=str(op.downstream_key())))
    return op.response


def ask_the_bank(op: Operation) -> None:
    """Find out what became of a refund whose worker has died: the resolver of `pyidem sweep`."""
    transfer = _bank().find(str(op.downstream_key()))
    if transfer is None:
        op.release()
    else:
        _enter(op, transfer)


def _enter(op: Operation, transfer: str) -> None:
    """Write the refund into the books, together with the answer."""
    order, cents = op.state["order"], op.state["cents"]
    with op.transaction() as connection:
        connection.execute(
            "insert into refund (order_no, cents, transfer) values (%s, %s, %s)", [order, cents, transfer]
        )
        op.complete(201, {"order": order, "cents": cents, "transfer": transfer})


def _bank() -> BankClient:
    return BankClient(int(os.environ[BANK_PORT]))

"""Resolvers that do harm, for the demonstration to convict."""

from uuid import uuid4

from pyidem.demo.crash import refunds
from pyidem.demo.crash.refunds import Operation


def pay_again(op: Operation) -> None:
    """Pay under a key that the bank has never seen."""
    bank = refunds._bank()
    transfer = bank.transfer(op.state["order"], op.state["cents"], idempotency_key=str(uuid4()))
    refunds._enter(op, transfer)


def believe(op: Operation) -> None:
    """Take for granted that the bank has paid."""
    refunds._enter(op, "tr_0")


def despair(_: Operation) -> None:
    """Find out nothing."""
    raise ConnectionError

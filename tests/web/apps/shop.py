"""What the applications share: the shop's tables, and a gate at which the tests can make a handler wait.

A handler at the gate waits for an advisory lock that a test holds, so that the test knows that it is at work.
"""

import os

from psycopg.conninfo import make_conninfo

# a test that kills a worker finds it by this name
DSN = make_conninfo(os.environ["APP_DSN"], application_name=f"w:{os.getpid()}")
INSERT = "insert into orders (name) values (%s) returning id"
GATE = "select pg_advisory_lock_shared(hashtextextended(%s, 0)), pg_advisory_unlock_shared(hashtextextended(%s, 0))"
SCOPE_HEADER = "x-client"


def answer_of(order: int) -> dict[str, int]:
    """Return the body of the answer to a new order."""
    return {"order": order}

"""A refund, however often it is asked for."""

import json

import psycopg

from pyidem import HttpCall, Idem, Response


# ten lines:
def refund(connection: psycopg.Connection, scope: str, key_header: str | None, body: bytes) -> Response:
    call = HttpCall(key_header, "POST", "/refunds", body, "application/json")
    with Idem(connection).atomic(scope, call) as op:
        if op.started and (asked := call.json())["amount"] <= 0:
            op.complete(422, b'{"error": "amount"}')
        elif op.started:
            insert = 'insert into refunds ("order", amount) values (%(order)s, %(amount)s) returning id'
            asked["id"] = op.connection.execute(insert, asked).fetchone()[0]
            op.complete(201, json.dumps(asked), [("Location", f"/refunds/{asked['id']}"), JSON])
    return op.response
    # end of ten lines


JSON = ("Content-Type", "application/json")

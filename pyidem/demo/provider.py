"""The simulated payment provider: another company, with its own process, database and idempotency keys.

It makes one transfer for each idempotency key, however often it is asked, and writes down every call.
"""

import json
from http.client import HTTPConnection
from socket import socket
from typing import Any

from psycopg_pool import ConnectionPool

from pyidem.demo.processes import serve
from pyidem.demo.wire import JsonHandler, Server

_TRANSFER = """
    with noted as (
        insert into call (idempotency_key) values (%(key)s)
    )
    insert into transfer (idempotency_key, order_no, cents) values (%(key)s, %(order)s, %(cents)s)
    on conflict (idempotency_key) do nothing
"""
_NAME = "select 'tr_' || id from transfer where idempotency_key = %(key)s"


class ProviderClient:
    """What the provider gives its customers to call it with."""

    def __init__(self, port: int) -> None:
        self._port = port

    def transfer(self, order: str, cents: int, *, idempotency_key: str) -> str:
        """Pay an amount back to the card of an order and return the transfer's name."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            body = json.dumps({"order": order, "cents": cents})
            connection.request("POST", "/transfers", body, {"Idempotency-Key": idempotency_key})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != 201:
            raise ConnectionError(f"the provider answered {response.status}")
        return str(json.loads(answer)["transfer"])


def make_server(listener: socket, *, dsn: str) -> Server:
    """Return the provider's server on its database."""
    pool = ConnectionPool(dsn, min_size=1, max_size=8, kwargs={"autocommit": True}, open=True)

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name is the base class's
            call: dict[str, Any] = {**json.loads(self.body()), "key": self.headers["Idempotency-Key"]}
            with pool.connection() as connection:
                connection.execute(_TRANSFER, call)
                row = connection.execute(_NAME, call).fetchone()
            assert row is not None
            self.answer(201, json.dumps({"transfer": row[0]}).encode())

    return Server(listener, Handler)


if __name__ == "__main__":
    serve(make_server)

"""The bank: another company, with a database of its own. It makes one transfer for each idempotency key.

It also plays fate: while it works on a chosen order it kills the worker that asks, before or after the transfer.
"""

import json
import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from psycopg_pool import ConnectionPool

TABLES: Final = """
create table transfer (
    id bigint generated always as identity primary key,
    idempotency_key text not null unique,
    order_no text not null,
    cents bigint not null
)
"""
_TRANSFER = """
    insert into transfer (idempotency_key, order_no, cents) values (%(key)s, %(order)s, %(cents)s)
    on conflict (idempotency_key) do nothing
"""
_FIND = "select 'tr_' || id from transfer where idempotency_key = %(key)s"
_PATH = "/transfers/"


class Fate(StrEnum):
    """When the worker dies that asks for a transfer."""

    BEFORE = "before"
    AFTER = "after"


class Bank:
    """The bank's server, while the block runs. `fates` are those of orders; each is met once."""

    def __init__(self, dsn: str, fates: Mapping[str, Fate]) -> None:
        self.killed = 0
        self._fates = dict(fates)
        self._pool = ConnectionPool(dsn, min_size=1, max_size=8, kwargs={"autocommit": True}, open=False)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="bank", daemon=True)

    @property
    def port(self) -> int:
        """Where it listens, on loopback."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._pool.open(wait=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._pool.close()

    def transfer(self, key: str, order: str, cents: int, worker: int) -> str | None:
        """Pay, and return the transfer's name; None where the worker has died before that was done."""
        fate = self._fates.pop(order, None)
        if fate is Fate.BEFORE:
            self._kill(worker)
            return None
        with self._pool.connection() as connection:
            connection.execute(_TRANSFER, {"key": key, "order": order, "cents": cents})
        if fate is Fate.AFTER:
            self._kill(worker)
        return self.find(key)

    def find(self, key: str) -> str | None:
        """Return the name of the transfer that was made under a key."""
        with self._pool.connection() as connection:
            row = connection.execute(_FIND, {"key": key}).fetchone()
        return None if row is None else str(row[0])

    def _kill(self, worker: int) -> None:
        os.kill(worker, signal.SIGKILL)
        self.killed += 1


class BankClient:
    """What the bank gives its customers."""

    def __init__(self, port: int) -> None:
        self._port = port

    def transfer(self, order: str, cents: int, *, idempotency_key: str) -> str:
        """Pay an amount to the account of an order's customer; return the transfer's name."""
        answer = self._ask("POST", idempotency_key, {"order": order, "cents": cents, "worker": os.getpid()})
        if answer is None:
            raise ConnectionError("the bank made no transfer")
        return answer

    def find(self, idempotency_key: str) -> str | None:
        """Return the name of the transfer that was made under a key, if there is one.

        What this bank has not done, it will not do: it forgets a request whose caller is gone.
        """
        return self._ask("GET", idempotency_key)

    def _ask(self, method: str, key: str, document: dict[str, Any] | None = None) -> str | None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            connection.request(method, _PATH + key, None if document is None else json.dumps(document))
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return None if answer is None else str(answer)


def _handler(bank: Bank) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(bank.find(self.path.removeprefix(_PATH)))

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(bank.transfer(self.path.removeprefix(_PATH), **asked))

        def _answer(self, answer: str | None) -> None:
            body = json.dumps(answer).encode()
            with suppress(ConnectionError):  # a dead worker hears nothing
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler

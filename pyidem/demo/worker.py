"""One worker process: HTTP around `service.py`."""

import logging
from socket import socket

from psycopg_pool import ConnectionPool

from pyidem import Idem, LostReservation
from pyidem.demo.fate import FatefulService, ProviderLost
from pyidem.demo.processes import serve
from pyidem.demo.provider import ProviderClient
from pyidem.demo.service import RefundRequest
from pyidem.demo.wire import JsonHandler, Server

_log = logging.getLogger(__name__)


def make_server(listener: socket, *, dsn: str, provider_port: int) -> Server:
    """Return the server of one worker."""
    idem = Idem(ConnectionPool(dsn, min_size=1, max_size=8, open=True))
    provider = ProviderClient(provider_port)

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name is the base class's
            try:
                self._refund()
            except (ProviderLost, LostReservation):  # the client had better ask again
                self.answer(503, b"")
            except Exception as error:  # noqa: BLE001 - the client gets a 500, and the log the rest
                _log.exception("request.failed")
                self.answer(500, repr(error).encode())

        def _refund(self) -> None:
            try:
                request = RefundRequest.parse(self.body())
            except ValueError as error:
                self.answer(400, str(error).encode())
                return
            service = FatefulService(idem, provider, self.headers["Fate"])
            answer = service.refund(self.headers["Client"], self.headers["Idempotency-Key"], request)
            headers = [*answer.response.headers, *([("Idempotency-Replayed", "true")] if answer.replayed else [])]
            self.answer(answer.response.status or 200, answer.response.body or b"", headers)

    return Server(listener, Handler)


if __name__ == "__main__":
    serve(make_server)

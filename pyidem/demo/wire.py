"""HTTP with nothing but the standard library, on a socket that somebody else listens on."""

import sys
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any


class Server(ThreadingHTTPServer):
    """A threading server on a socket that was opened by the parent process and outlives this one."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listener: socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Be silent about a client that has hung up; report anything else."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class JsonHandler(BaseHTTPRequestHandler):
    """Reads a body, writes an answer, and adds no headers that change from one answer to the next."""

    timeout = 30

    def body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, status: int, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send the answer."""
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Keep no access log."""

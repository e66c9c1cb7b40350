"""An HTTP request, as far as it says which operation is meant: the key's header, and what the fingerprint is made of.

Nothing is judged here. What the key is, whether one is needed, and whether two requests are the same, the database
says. No framework is imported: a request is read by the names that its framework gives to its parts.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

if TYPE_CHECKING:
    from django.http import HttpRequest  # type: ignore[import-untyped]
    from starlette.requests import Request
    from werkzeug.wrappers import Request as WerkzeugRequest

KEY_HEADER = "Idempotency-Key"

_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_UNQUOTED = "/:@!$&'()*+,;=~"
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")

ReceiveMessage = Callable[[], Awaitable[MutableMapping[str, Any]]]


class BodyTooLarge(Exception):
    """A request's body is longer than what is to be kept of one."""


class Disconnected(Exception):
    """The caller has hung up before all of the request had come."""


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request, in place of the key of `idem.atomic` and `idem.leased`.

    `key_header` is the value of the header Idempotency-Key, None where there was none. Several such lines are joined by
    commas, as HTTP says, which makes no valid key. `path` is the request target as it was received: undecoded, with its
    query.
    """

    key_header: str | None
    method: str
    path: str
    body: bytes = field(default=b"", repr=False)
    content_type: str | None = None

    def json(self) -> Any:
        """Parse the body as JSON. Raises ValueError where it is none."""
        return json.loads(self.body)

    @classmethod
    async def from_starlette(cls, request: "Request") -> Self:
        """Read a request of Starlette or FastAPI, which can still read its body afterwards.

        A form that was parsed before is gone: call this first, or in FastAPI use `pyidem.fastapi.IdempotentRoute`.
        """
        return cls.of_scope(request.scope, await request.body())

    @classmethod
    async def from_asgi(cls, scope: Mapping[str, Any], receive: ReceiveMessage, limit: int | None = None) -> Self:
        """Read an ASGI request to its end. Raises BodyTooLarge above `limit` bytes, Disconnected on a hang-up."""
        return cls.of_scope(scope, await read_asgi_body(receive, limit))

    @classmethod
    def from_django(cls, request: "HttpRequest") -> Self:
        """Read a request of Django, under WSGI or ASGI. Do so before `request.POST`, which consumes the body."""
        if hasattr(request, "scope"):
            return cls.of_scope(request.scope, request.body)
        return cls.of_environ(request.META, request.body)

    @classmethod
    def from_flask(cls, request: "WerkzeugRequest") -> Self:
        """Read a request of Flask, or any of Werkzeug's. Do so before `request.form`, which consumes the body."""
        parsed = "form" in vars(request) and request.mimetype in _FORMS and request.content_length != 0
        if parsed and not request.get_data():
            raise RuntimeError("the form was parsed before: make the HttpCall first")
        return cls.of_environ(request.environ, request.get_data())

    @classmethod
    def from_wsgi(cls, environ: MutableMapping[str, Any], limit: int | None = None) -> Self:
        """Read a WSGI request to its end, and leave its body there once more.

        Raises BodyTooLarge above `limit` bytes, Disconnected on a hang-up.
        """
        return cls.of_environ(environ, read_wsgi_body(environ, limit))

    @classmethod
    def of_scope(cls, scope: Mapping[str, Any], body: bytes) -> Self:
        """Read an ASGI request whose body was received elsewhere."""
        return cls(
            _asgi_header(scope["headers"], b"idempotency-key"),
            scope["method"],
            _text(_target_of_scope(scope)),
            body,
            _asgi_header(scope["headers"], b"content-type"),
        )

    @classmethod
    def of_environ(cls, environ: Mapping[str, Any], body: bytes) -> Self:
        """Read a WSGI request whose body was read elsewhere."""
        return cls(
            _optional(environ.get("HTTP_IDEMPOTENCY_KEY")),
            environ["REQUEST_METHOD"],
            _text(_target_of_environ(environ)),
            body,
            _optional(environ.get("CONTENT_TYPE") or None),
        )


async def read_asgi_body(receive: ReceiveMessage, limit: int | None) -> bytes:
    """Receive a whole body, but no more than `limit` bytes of it."""
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if limit is not None and size > limit:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return b"".join(chunks)


def read_wsgi_body(environ: MutableMapping[str, Any], limit: int | None) -> bytes:
    """Read a whole body, but no more than `limit` bytes of it, and put it where the application finds it."""
    stream = environ["wsgi.input"]
    announced = environ.get("CONTENT_LENGTH") or None
    if announced is not None and limit is not None and int(announced) > limit:
        raise BodyTooLarge
    if announced is not None:
        body = stream.read(int(announced))
    elif environ.get("wsgi.input_terminated"):
        body = stream.read() if limit is None else stream.read(limit + 1)
    else:  # without a length, reading on would wait for ever
        body = b""
    if announced is not None and len(body) < int(announced):
        raise Disconnected
    if limit is not None and len(body) > limit:
        raise BodyTooLarge
    environ["wsgi.input"] = BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))
    assert isinstance(body, bytes)
    return body


def _asgi_header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str | None:
    lines = [value.decode("latin-1") for name, value in headers if name.lower() == wanted]
    return _text(", ".join(lines)) if lines else None


def _target_of_scope(scope: Mapping[str, Any]) -> str:
    raw = scope.get("raw_path")
    path = raw.decode("latin-1") if raw else quote(scope["path"], safe=_UNQUOTED)
    return _target(path, scope.get("query_string", b"").decode("latin-1"))


def _target_of_environ(environ: Mapping[str, Any]) -> str:
    """Return the target as the server has kept it; not all do, and then it is put together again."""
    raw = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if raw:
        path, _, query = str(raw).partition("?")
        return _target(path, query)
    decoded = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    path = quote(decoded.encode("latin-1"), safe=_UNQUOTED)
    return _target(path, environ.get("QUERY_STRING", ""))


def _target(path: str, query: str) -> str:
    """Put the two together. An empty query is none: ASGI servers cannot tell one from the other."""
    return f"{path}?{query}" if query else path


def _text(value: str) -> str:
    """Put a character that is in no valid key in place of one that no database text can hold."""
    return _NOT_TEXT.sub("\ufffd", value)


def _optional(value: str | None) -> str | None:
    return None if value is None else _text(value)

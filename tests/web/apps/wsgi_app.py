"""Flask in the middleware: a route for each way in which an answer may come to its end, or not."""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
from flask import Flask, Response, abort, jsonify, redirect, request, send_file
from psycopg_pool import ConnectionPool

from pyidem import Idem
from pyidem.wsgi import IdempotencyMiddleware, Protection
from tests.web.apps.limits import LARGE, LIMIT
from tests.web.apps.shop import DSN, GATE, INSERT, answer_of

pool = ConnectionPool[psycopg.Connection[Any]](
    DSN, min_size=1, max_size=int(os.environ.get("APP_POOL", "4")), open=True, timeout=20
)
app = Flask(__name__)


def insert() -> int:
    """Do the work, in a connection of the application's own."""
    with pool.connection() as connection:
        row = connection.execute(INSERT, [request.args["name"]]).fetchone()
    assert row is not None
    return int(row[0])


def at_gate(name: str) -> None:
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute(GATE, [name, name])


@app.route("/created", methods=["GET", "HEAD", "OPTIONS", "POST"])
def created() -> Response:
    number = insert()
    response = jsonify(answer_of(number))
    response.status_code = 201
    response.headers["Location"] = f"/orders/{number}"
    for value in ("a", "b"):
        response.headers.add("Link", f"</{value}>; rel={value}")
        response.headers.add("Set-Cookie", f"{value}={number}")
    return response


@app.post("/status/<int:status>")
def status(status: int) -> tuple[dict[str, int], int]:
    insert()
    return {"status": status}, status


@app.post("/empty")
def empty() -> tuple[str, int]:
    insert()
    return "", 204


@app.post("/redirect")
def go_elsewhere() -> Any:
    insert()
    return redirect("/elsewhere", 303)


@app.post("/file")
def file() -> Any:
    insert()
    return send_file(__file__)


@app.post("/stream")
def stream() -> Response:
    insert()
    name = request.args["name"]

    def parts() -> Iterator[bytes]:
        yield b"one,"
        yield b"two,"
        at_gate(name)
        yield b"three"

    return Response(parts(), 201, mimetype="text/plain")


@app.post("/broken_stream")
def broken_stream() -> Response:
    insert()

    def parts() -> Iterator[bytes]:
        yield b"one,"
        yield b"two,"
        raise RuntimeError("in the middle of the answer")

    return Response(parts())


@app.post("/events")
def events() -> Response:
    insert()
    name = request.args["name"]

    def parts() -> Iterator[bytes]:
        yield b"data: 1\n\n"
        at_gate(name)
        yield b"data: 2\n\n"

    return Response(parts(), mimetype="text/event-stream")


@app.post("/sized")
def sized() -> Response:
    insert()
    size = int(request.args["size"])
    return Response((b"x" * min(32768, size - start) for start in range(0, size, 32768)), 201, mimetype="text/plain")


@app.post("/raises")
def raises() -> Response:
    insert()
    raise ValueError("a fault of the application")


@app.post("/not_found")
def not_found() -> Response:
    insert()
    abort(404)


@app.post("/background")
def background() -> Response:
    number = insert()
    response = jsonify(answer_of(number))
    name = request.args["name"]

    def later() -> None:
        with pool.connection() as connection:
            connection.execute(INSERT, [name])

    response.call_on_close(later)
    return response


@app.post("/gated")
def gated() -> tuple[dict[str, int], int]:
    number = insert()
    at_gate(request.args["name"])
    return answer_of(number), 201


@app.post("/slow")
def slow() -> tuple[dict[str, int], int]:
    with pool.connection() as connection:
        connection.execute("select pg_sleep(0.1)")
        row = connection.execute(INSERT, [request.args["name"]]).fetchone()
    assert row is not None
    return answer_of(row[0]), 201


@app.post("/echo")
def echo() -> Response:
    insert()
    return Response(request.get_data(), 201, content_type=request.content_type)


@app.post("/form")
def form() -> tuple[dict[str, Any], int]:
    insert()
    return {"field": request.form["field"], "size": len(request.files["file"].read())}, 201


def fails_before_it_starts(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Replace an answer that was begun, as WSGI lets an application do."""
    start_response("200 OK", [("content-type", "text/plain")])
    try:
        _ = environ["nothing of this name"]
    except KeyError as error:
        start_response("418 Teapot", [("content-type", "text/plain")], (type(error), error, error.__traceback__))
    return [b"replaced"]


def writes(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:  # noqa: ARG001
    """Send a part the old way."""
    start_response("200 OK", [("content-type", "text/plain")])(b"written,")
    return [b"returned"]


def client_of(environ: dict[str, Any]) -> str | None:
    return environ.get("HTTP_X_CLIENT")


def protection_of(environ: dict[str, Any]) -> Protection | None:
    options: dict[str, Any] = {
        "max_response_bytes": LIMIT, "max_request_bytes": LARGE, "lease": timedelta(seconds=30)
    }  # fmt: skip
    match environ["PATH_INFO"].split("/")[1]:
        case "unprotected":
            return None
        case "open":
            return Protection(fail_open=True, **options)
        case "required":
            return Protection(policy="required", **options)
        case "patient":
            return Protection(wait=timedelta(seconds=20), **options)
        case _:
            return Protection(**options)


def without_prefix(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path in ("/fails_before_it_starts", "/writes"):
        return globals()[path[1:]](environ, start_response)
    prefix, _, rest = path[1:].partition("/")
    if prefix in ("unprotected", "open", "required", "patient"):
        environ = {**environ, "PATH_INFO": f"/{rest}"}
    return app.wsgi_app(environ, start_response)


application = IdempotencyMiddleware(without_prefix, Idem(pool), scope=client_of, protect=protection_of)

"""What an HttpCall is made of is the same under every server and framework."""

from collections.abc import Callable
from contextlib import ExitStack
from io import BytesIO
from typing import Any

import pytest
from flask import Flask
from flask import request as flask_request
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from pyidem import HttpCall, Response
from tests.web.conftest import client_on
from tests.web.test_frameworks import FRAMEWORKS

TARGETS = ["/orders?a=%20%2F%7e&b=+", "/orders?", "/orders?q=%C3%A9&q=%c3%a9"]


@pytest.mark.parametrize("target", TARGETS)
def test_one_key_is_one_operation_on_every_framework(
    serve: Callable[..., str], name: str, orders: Callable[[str], int], target: str
) -> None:
    body = {"name": name, "amount": 1}
    with ExitStack() as stack:
        clients = [stack.enter_context(client_on(serve(*server))) for server in FRAMEWORKS.values()]
        answers = [client.order(target, name, json=body) for client in clients]

    assert [answer.status_code for answer in answers] == [201] * len(FRAMEWORKS)
    assert len({answer.content for answer in answers}) == 1
    assert orders(name) == 1


def environ_of(**more: Any) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/a b/\xe9",
        "QUERY_STRING": "x=%20",
        "wsgi.input": BytesIO(),
        **more,
    }


def test_a_target_that_the_server_has_not_kept_is_put_together_again() -> None:
    assert HttpCall.from_wsgi(environ_of()).path == "/a%20b/%E9?x=%20"
    assert HttpCall.from_wsgi(environ_of(SCRIPT_NAME="/mounted")).path == "/mounted/a%20b/%E9?x=%20"
    assert HttpCall.from_wsgi(environ_of(REQUEST_URI="/a%20b/%e9?x=%20")).path == "/a%20b/%e9?x=%20"
    scope = {"method": "POST", "path": "/a b/é", "query_string": b"x=%20", "headers": []}
    assert HttpCall.of_scope(scope, b"").path == "/a%20b/%C3%A9?x=%20"
    assert HttpCall.of_scope(scope | {"raw_path": b"/a%20b/%c3%a9"}, b"").path == "/a%20b/%c3%a9?x=%20"


def test_several_lines_of_a_header_are_joined() -> None:
    headers = [(b"Idempotency-Key", b"one"), (b"x", b"y"), (b"idempotency-key", b"two")]
    scope = {"method": "POST", "path": "/", "headers": headers}
    assert HttpCall.of_scope(scope, b"").key_header == "one, two"
    assert HttpCall.of_scope(scope | {"headers": []}, b"").key_header is None
    assert HttpCall.of_scope(scope | {"headers": [(b"idempotency-key", b"")]}, b"").key_header == ""


def test_what_no_database_text_can_hold_is_a_key_that_is_not_valid() -> None:
    call = HttpCall.from_wsgi(environ_of(HTTP_IDEMPOTENCY_KEY="a\0\udc80b"))
    assert call.key_header == "a\ufffd\ufffdb"


def test_a_body_is_read_again_by_the_application() -> None:
    environ = environ_of(CONTENT_LENGTH="4") | {"wsgi.input": BytesIO(b"bodyand more")}
    assert HttpCall.from_wsgi(environ).body == b"body"
    assert environ["wsgi.input"].read() == b"body"
    chunked = environ_of(**{"wsgi.input_terminated": True}) | {"wsgi.input": BytesIO(b"chunks")}
    assert HttpCall.from_wsgi(chunked).body == b"chunks"
    assert chunked["CONTENT_LENGTH"] == "6"


def test_a_form_that_was_parsed_before_is_told_and_not_taken_for_an_empty_body() -> None:
    request = Request(EnvironBuilder(method="POST", data={"a": "1"}).get_environ())
    assert request.form["a"] == "1"
    with pytest.raises(RuntimeError, match="first"):
        HttpCall.from_flask(request)

    early = Request(EnvironBuilder(method="POST", data={"a": "1"}).get_environ())
    assert HttpCall.from_flask(early).body == b"a=1"
    assert early.form["a"] == "1"


def test_the_body_is_not_in_the_representation() -> None:
    assert "secret" not in repr(HttpCall("k", "POST", "/", b"secret"))
    assert HttpCall("k", "POST", "/", b'{"a": [1]}').json() == {"a": [1]}


ANSWER = Response(
    201, (("link", "</a>"), ("Link", "</b>"), ("set-cookie", "a=1"), ("x", "\u20ac"), ("content-length", "99")), b"body"
)


def test_an_answer_goes_to_each_framework_whole() -> None:
    starlette = ANSWER.to_starlette()
    assert (starlette.status_code, starlette.body) == (201, b"body")
    assert starlette.headers.getlist("link") == ["</a>", "</b>"]
    assert (b"content-length", b"4") in starlette.raw_headers
    assert (b"x", "\u20ac".encode()) in starlette.raw_headers

    with Flask("shop").test_request_context("/"):
        flask = ANSWER.to_flask()
        assert flask_request.path == "/"
    assert (flask.status_code, flask.get_data(), flask.headers.getlist("Link")) == (201, b"body", ["</a>", "</b>"])
    assert flask.headers.getlist("Content-Type") == []

    started: list[Any] = []
    assert ANSWER.to_wsgi(lambda *given: started.append(given)) == [b"body"]
    assert started[0][0] == "201 Created"
    assert ("Content-Length", "4") in started[0][1]


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_goes_out_without_one(status: int) -> None:
    answer = Response(status, (), b"")
    assert answer.wire_headers == []
    assert answer.to_starlette().raw_headers == []
    assert answer.to_flask().get_data() == b""


def test_an_answer_without_a_status_is_none() -> None:
    with pytest.raises(ValueError, match="status"):
        Response().to_starlette()

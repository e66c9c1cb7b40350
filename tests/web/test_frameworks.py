"""An atomic block in an endpoint of each framework: the whole answer of every outcome, and one effect."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.web.conftest import Client, client_on

Count = Callable[[str], int]
Serve = Callable[..., str]

FRAMEWORKS = {
    "fastapi": ("uvicorn", "tests.web.apps.fastapi_app:app"),
    "starlette": ("uvicorn", "tests.web.apps.starlette_app:app"),
    "django": ("gunicorn", "tests.web.apps.django_app:application"),
    "django-asgi": ("uvicorn", "tests.web.apps.django_app:asgi_application"),
    "flask": ("gunicorn", "tests.web.apps.flask_app:app"),
}


@pytest.fixture(params=FRAMEWORKS)
def web(request: pytest.FixtureRequest, serve: Serve) -> Iterator[Client]:
    """A client of a server that runs one of the frameworks, each in turn."""
    kind, app = FRAMEWORKS[request.param]
    with client_on(serve(kind, app)) as client:
        yield client


def body_of(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "amount": 1, **more}


def test_three_calls_are_created_replayed_and_replayed_with_one_effect(web: Client, name: str, orders: Count) -> None:
    answers = [web.order("/orders", name, json=body_of(name)) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert [answer.headers.get("idempotency-replayed") for answer in answers] == [None, "true", "true"]
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["location"] for answer in answers}) == 1
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}
    assert orders(name) == 1


def test_another_request_under_the_key_is_told_what_differs(web: Client, name: str, orders: Count) -> None:
    web.order("/orders", name, json=body_of(name))

    refused = web.order("/orders", name, json=body_of(name) | {"amount": 2})

    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "idempotency_key_reused"
    assert refused.json()["mismatched"] == ["/amount"]
    assert orders(name) == 1


def test_a_key_that_is_none_is_refused(web: Client, name: str, orders: Count) -> None:
    refused = web.order("/orders", "two words", json=body_of(name))

    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_invalid")
    assert orders(name) == 0


@pytest.mark.parametrize("lines", [["one", "two"], ["same", "same"], ['"one"', '"two"']])
def test_several_lines_of_the_header_are_no_key(web: Client, name: str, orders: Count, lines: list[str]) -> None:
    headers = [("idempotency-key", f"{line}") for line in lines]

    refused = web.order("/orders", None, headers=headers, json=body_of(name))

    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_invalid")
    assert orders(name) == 0


def test_without_a_key_each_request_is_worked_on(web: Client, name: str, orders: Count) -> None:
    answers = [web.order("/orders", None, json=body_of(name)) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert orders(name) == 2


@pytest.mark.parametrize(
    ("path", "same"),
    [("/orders?b=1&a=2", False), ("/orders?a=2&b=1", False), ("/orders", True)],
)
def test_the_query_as_it_was_sent_is_a_part_of_the_request(
    web: Client, name: str, orders: Count, path: str, same: bool
) -> None:
    first = path if not same else "/orders"
    web.order(first, name, json=body_of(name))

    again = web.order(path if same else f"{path}&c=3", name, json=body_of(name))

    assert again.status_code == (201 if same else 422)
    assert orders(name) == 1


def test_an_error_of_the_tree_becomes_its_answer(web: Client, name: str) -> None:
    assert web.order("/raising", name, json={"other": 0}).status_code == 201

    refused = web.order("/raising", name, json={"other": 1})

    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["mismatched"] == ["/other"]


def test_scopes_do_not_meet(web: Client, name: str, orders: Count) -> None:
    for client in ("client:1", "client:2"):
        assert web.order("/orders", name, client=client, json=body_of(name)).status_code == 201
    assert orders(name) == 2


def test_a_view_in_the_transaction_of_its_request_commits_or_rolls_back_with_it(
    serve: Serve, name: str, orders: Count
) -> None:
    with client_on(serve(*FRAMEWORKS["django"])) as web:
        undone = web.order("/joined", name, json=body_of(name, status=503))
        assert (undone.status_code, orders(name)) == (503, 0)
        answers = [web.order("/joined", name, json=body_of(name)) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert answers[2].headers["idempotency-replayed"] == "true"
    assert orders(name) == 1


def test_django_gets_several_headers_of_one_name(serve: Serve, name: str) -> None:
    with client_on(serve(*FRAMEWORKS["django"])) as web:
        first, again = (web.order("/orders", name, json=body_of(name)) for _ in range(2))

    assert first.headers["link"] == again.headers["link"] == "</a>; rel=a, </b>; rel=b"
    cookies = {cookie.partition(";")[0]: cookie for cookie in first.headers.get_list("set-cookie")}
    assert set(cookies) == {"a=1", "b=2"}
    assert all(part in cookies["a=1"] for part in ("Path=/x", "HttpOnly", "SameSite=Strict"))
    assert again.headers.get_list("set-cookie") == []


def test_the_base_install_needs_no_framework() -> None:
    hidden = ["starlette", "fastapi", "django", "flask", "werkzeug", "sqlalchemy", "psycopg_pool", "httpx"]
    program = f"""
import sys
sys.modules.update(dict.fromkeys({hidden!r}))
import pyidem, pyidem.asgi, pyidem.wsgi
from io import BytesIO
call = pyidem.HttpCall.from_wsgi({{"REQUEST_METHOD": "POST", "PATH_INFO": "/", "wsgi.input": BytesIO()}})
print(call.path)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("/\n", "")


@pytest.mark.parametrize("framework", ["starlette", "fastapi", "django", "flask"])
def test_a_module_for_a_framework_asks_for_it(framework: str) -> None:
    program = f"import sys; sys.modules[{framework!r}] = None; import pyidem.{framework}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError" in done.stderr
    assert framework in done.stderr.splitlines()[-1]

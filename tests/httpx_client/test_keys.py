"""Which requests get a key, and that it stays the same as long as the call does."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from pyidem.httpx import Idempotency
from tests.httpx_client.conftest import URL, Caller, Script


def lost() -> httpx.ReadError:
    return httpx.ReadError("lost")


def test_a_call_has_one_random_key_on_every_attempt(caller: Caller) -> None:
    script = Script(lost(), httpx.Response(503), httpx.Response(201))

    caller.post(script)

    assert len(script.keys) == 3
    assert len(set(script.keys)) == 1
    assert UUID(script.keys[0]).version == 4


def test_two_calls_have_two_keys(caller: Caller) -> None:
    script = Script(httpx.Response(201), httpx.Response(201))

    caller.post(script)
    caller.post(script)

    assert len(set(script.keys)) == 2


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_must_not_run_twice_gets_a_key(method: str, caller: Caller) -> None:
    script = Script(httpx.Response(200))

    caller.send(script, lambda client: client.build_request(method, URL))

    assert script.keys != [None]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_what_may_run_twice_gets_none_and_passes_through_once(method: str, caller: Caller) -> None:
    script = Script(httpx.Response(503))

    response = caller.send(script, lambda client: client.build_request(method, URL))

    assert script.keys == [None]
    assert response.status_code == 503
    assert "idempotency" not in response.extensions


def test_the_methods_that_get_a_key_can_be_chosen(caller: Caller) -> None:
    script = Script(httpx.Response(200))

    caller.send(script, lambda client: client.build_request("PUT", URL), methods=["put"])

    assert script.keys != [None]


@pytest.mark.parametrize("key", ["order-17", '"order-17"', "MiXed:Case"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_key_of_the_caller_is_sent_as_it_is_on_every_attempt(key: str, method: str, caller: Caller) -> None:
    script = Script(lost(), httpx.Response(200))

    response = caller.send(
        script, lambda client: client.build_request(method, URL, headers={"idempotency-key": key}), make_key=forbidden
    )

    assert script.keys == [key, key]
    assert response.extensions["idempotency"].key == key


def forbidden(_: httpx.Request) -> str:
    raise AssertionError("a key was made")


def test_keys_can_be_made_by_the_caller(caller: Caller) -> None:
    script = Script(lost(), httpx.Response(200))

    caller.post(script, make_key=lambda request: f'"{request.method} 1"')

    assert script.keys == ['"POST 1"', '"POST 1"']


def test_a_redirect_belongs_to_the_same_call(caller: Caller) -> None:
    script = Script(httpx.Response(307, headers={"Location": "/v2/refunds"}), httpx.Response(201))
    caller.client = {"follow_redirects": True}

    caller.send(script, lambda client: client.build_request("POST", URL, content=caller.once(b"a", b"b")))

    assert [request.url.path for request in script.requests] == ["/refunds", "/v2/refunds"]
    assert len(set(script.keys)) == 1
    assert [request.read() for request in script.requests] == [b"ab", b"ab"]


def test_the_answer_to_a_challenge_belongs_to_the_same_call(caller: Caller) -> None:
    challenge = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
    script = Script(httpx.Response(401, headers={"WWW-Authenticate": challenge}), httpx.Response(201))
    caller.client = {"auth": httpx.DigestAuth("user", "password")}

    caller.post(script)

    assert len(script.keys) == 2
    assert len(set(script.keys)) == 1


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, (False, False)),
        ({"Idempotency-Replayed": "true"}, (True, False)),
        ({"Idempotent-Replayed": "true"}, (True, False)),
        ({"Idempotency-Replayed": "true", "Idempotency-Body-Omitted": "true"}, (True, True)),
    ],
)
def test_a_replay_is_told_from_a_first_answer(headers: dict[str, str], told: Any, caller: Caller) -> None:
    script = Script(lost(), httpx.Response(201, headers=headers, json={"id": 1}))

    response = caller.post(script)

    assert response.extensions["idempotency"] == Idempotency(script.keys[0] or "", 2, *told)
    assert response.json() == {"id": 1}


def test_the_last_error_names_the_key_to_go_on_with(caller: Caller) -> None:
    script = Script(*[lost() for _ in range(8)])

    with pytest.raises(httpx.ReadError) as failed:
        caller.post(script)

    assert failed.value.request.headers["Idempotency-Key"] == script.keys[0]

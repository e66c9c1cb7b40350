"""The middleware on real servers: each way in which an answer may come to its end has a defined one."""

import gzip
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import httpx
import psycopg
import pytest

from tests.support.waiting import wait_until
from tests.web.apps.limits import LARGE, LIMIT
from tests.web.conftest import Client, Gate, client_on

Count = Callable[[str], int]
Serve = Callable[..., str]

SERVERS = {
    "asgi": ("uvicorn", "tests.web.apps.asgi_app:app"),
    "wsgi": ("gunicorn", "tests.web.apps.wsgi_app:application"),
}
REPLAYED = "idempotency-replayed"


@pytest.fixture(params=SERVERS)
def web(request: pytest.FixtureRequest, serve: Serve) -> Iterator[Client]:
    """A client of a server that runs one of the middleware, each in turn."""
    with client_on(serve(*SERVERS[request.param])) as client:
        yield client


@pytest.fixture
def asgi(serve: Serve) -> Iterator[Client]:
    """A client of the ASGI application."""
    with client_on(serve(*SERVERS["asgi"])) as client:
        yield client


@pytest.fixture
def wsgi(serve: Serve) -> Iterator[Client]:
    """A client of the WSGI application."""
    with client_on(serve(*SERVERS["wsgi"])) as client:
        yield client


@pytest.fixture
def outcome(observer: psycopg.Connection) -> Callable[[str], str]:
    """A function that looks at a key."""

    def look(key: str) -> str:
        row = observer.execute("select outcome from idem.lookup('client:1', %s)", [key]).fetchone()
        assert row is not None
        return str(row[0])

    return look


def headers_of(answer: httpx.Response, *left_out: str) -> list[tuple[str, str]]:
    skipped = {"date", "server", "content-length", "transfer-encoding", "connection", REPLAYED, *left_out}
    return sorted((name, value) for name, value in answer.headers.multi_items() if name not in skipped)


def test_three_calls_are_created_replayed_and_replayed_with_one_effect(web: Client, name: str, orders: Count) -> None:
    answers = [web.order(f"/created?name={name}", name) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    assert [answer.headers.get(REPLAYED) for answer in answers] == [None, "true", "true"]
    assert len({answer.content for answer in answers}) == 1
    assert orders(name) == 1


def test_a_replay_has_the_first_answers_headers_but_no_cookies(web: Client, name: str) -> None:
    first, again = (web.order(f"/created?name={name}", name) for _ in range(2))

    assert first.headers.get_list("link") == again.headers.get_list("link") == ["</a>; rel=a", "</b>; rel=b"]
    assert len(first.headers.get_list("set-cookie")) == 2
    assert again.headers.get_list("set-cookie") == []
    assert headers_of(first, "set-cookie") == headers_of(again)
    assert "date" in again.headers
    assert first.headers["location"] == again.headers["location"]


@pytest.mark.parametrize("path", ["empty", "redirect", "file", "not_found", "status/400", "status/409", "status/422"])
def test_whatever_was_answered_is_answered_again(
    web: Client, name: str, orders: Count, path: str, outcome: Callable[[str], str]
) -> None:
    first, again, third = (web.order(f"/{path}?name={name}", name) for _ in range(3))

    assert first.status_code == again.status_code == third.status_code
    assert first.content == again.content == third.content
    assert headers_of(first) == headers_of(again) == headers_of(third)
    assert (again.headers.get(REPLAYED), third.headers.get(REPLAYED)) == ("true", "true")
    assert (orders(name), outcome(name)) == (1, "completed")
    expected = {"empty": 204, "redirect": 303, "file": 200, "not_found": 404}
    assert first.status_code == expected.get(path, int(path[-3:]) if path[-3:].isdigit() else 0)


def test_an_empty_body_stays_one(asgi: Client, name: str, orders: Count) -> None:
    first, again = (asgi.order(f"/nothing?name={name}", name) for _ in range(2))

    assert (first.status_code, first.content, first.headers["content-length"]) == (200, b"", "0")
    assert (again.status_code, again.content, again.headers["content-length"]) == (200, b"", "0")
    assert orders(name) == 1


@pytest.mark.parametrize("status", [401, 403, 425, 429])
def test_a_request_that_was_rejected_before_the_work_may_be_made_again(
    web: Client, name: str, status: int, outcome: Callable[[str], str]
) -> None:
    assert web.order(f"/status/{status}?name={name}", name).status_code == status
    assert outcome(name) == "absent"
    assert web.order(f"/status/201?name={name}", name).status_code == 201


@pytest.mark.parametrize("path", ["status/500", "status/503", "status/408", "raises"])
def test_an_answer_that_says_that_the_work_may_have_happened_leaves_the_outcome_unknown(
    web: Client, name: str, orders: Count, path: str, outcome: Callable[[str], str]
) -> None:
    # after an exception the server closes the connection
    first = web.order(f"/{path}?name={name}", name, headers=[("connection", "close")])
    again = web.order(f"/{path}?name={name}", name)

    assert first.status_code == (500 if path == "raises" else int(path[-3:]))
    assert (again.status_code, again.json()["code"]) == (409, "idempotency_outcome_unknown")
    assert "retry-after" in again.headers
    assert (orders(name), outcome(name)) == (1, "lapsed")


def test_no_answer_at_all_leaves_the_outcome_unknown(
    asgi: Client, name: str, orders: Count, outcome: Callable[[str], str]
) -> None:
    assert asgi.order(f"/silent?name={name}", name).status_code == 500
    assert (orders(name), outcome(name)) == (1, "lapsed")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_is_safe_by_its_method_passes_untouched(
    web: Client, name: str, orders: Count, method: str, outcome: Callable[[str], str]
) -> None:
    for _ in range(2):
        answer = web.request(method, f"/created?name={name}", headers={"idempotency-key": name})
        assert answer.status_code < 300
        assert REPLAYED not in answer.headers
    assert outcome(name) == "absent"
    if method != "OPTIONS":
        assert orders(name) == 2


def test_without_a_key_the_request_passes(web: Client, name: str, orders: Count) -> None:
    assert [web.order(f"/created?name={name}", None).status_code for _ in range(2)] == [201, 201]
    assert orders(name) == 2


def test_a_key_may_be_required(web: Client, name: str, orders: Count) -> None:
    refused = web.order(f"/required/created?name={name}", None)

    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_missing")
    assert web.order(f"/required/created?name={name}", name).status_code == 201
    assert orders(name) == 1


@pytest.mark.parametrize("client", [None, ""])
def test_without_a_scope_nothing_is_served(web: Client, name: str, orders: Count, client: str | None) -> None:
    refused = web.order(f"/created?name={name}", name, client=client)

    assert (refused.status_code, refused.json()["code"]) == (500, "idempotency_scope_missing")
    assert refused.headers["content-type"] == "application/problem+json"
    assert orders(name) == 0


def test_a_route_may_be_left_out(web: Client, name: str, orders: Count) -> None:
    assert [web.order(f"/unprotected/created?name={name}", name).status_code for _ in range(2)] == [201, 201]
    assert orders(name) == 2


def test_another_request_under_the_key_is_refused(web: Client, name: str, orders: Count) -> None:
    web.order(f"/echo?name={name}", name, json={"a": 1, "b": 2})

    refused = web.order(f"/echo?name={name}", name, json={"b": 3, "a": 1})
    same = web.order(
        f"/echo?name={name}", name, content=b'{"b":2,  "a":1.0}', headers=[("content-type", "application/json")]
    )

    assert (refused.status_code, refused.json()["mismatched"]) == (422, ["/b"])
    assert (same.status_code, same.headers[REPLAYED], same.content) == (201, "true", b'{"a":1,"b":2}')
    assert orders(name) == 1


def test_a_duplicate_of_a_running_request_is_told_so_at_once(web: Client, name: str, orders: Count, gate: Gate) -> None:
    with ThreadPoolExecutor() as threads:
        first = threads.submit(web.order, f"/gated?name={name}", name)
        gate.wait_for()
        duplicate = web.order(f"/gated?name={name}", name)
        gate.open()
        assert first.result().status_code == 201

    assert (duplicate.status_code, duplicate.json()["code"]) == (409, "idempotency_request_in_progress")
    assert duplicate.headers["retry-after"] == "1"
    assert web.order(f"/gated?name={name}", name).headers[REPLAYED] == "true"
    assert orders(name) == 1


def test_a_duplicate_may_wait_for_the_first_answer(web: Client, name: str, orders: Count, gate: Gate) -> None:
    path = f"/patient/gated?name={name}"
    with ThreadPoolExecutor(20) as threads:
        requests = [threads.submit(web.order, path, name) for _ in range(10)]
        gate.wait_for()
        gate.open()
        answers = [request.result() for request in requests]

    assert {answer.status_code for answer in answers} == {201}
    assert sorted(answer.headers.get(REPLAYED, "") for answer in answers) == ["", *["true"] * 9]
    assert orders(name) == 1


BODIES: dict[str, tuple[str | None, list[bytes]]] = {
    "json": ("application/json", [b'{"a": [1, 2, {"b": null}]}']),
    "form": ("application/x-www-form-urlencoded", [b"a=1&b=two+words"]),
    "multipart": ("multipart/form-data; boundary=x", [b"--x\r\ncontent-disposition: form-data\r\n\r\n1\r\n--x--\r\n"]),
    "chunked": (None, [b"one", bytes(range(256)), b"three"]),
    "empty": (None, [b""]),
    "large": ("application/octet-stream", [b"x" * (2 * 1024 * 1024)]),
}


@pytest.mark.parametrize("kind", BODIES)
def test_the_application_gets_the_body_as_it_was_sent(web: Client, name: str, kind: str) -> None:
    content_type, parts = BODIES[kind]
    headers = [] if content_type is None else [("content-type", content_type)]
    sent = b"".join(parts)

    content = iter(parts) if kind == "chunked" else sent
    first = web.order(f"/echo?name={name}", name, headers=headers, content=content)
    again = web.order(f"/echo?name={name}", name, headers=headers, content=sent)

    assert first.status_code == 201, first.text
    assert sha256(first.content).digest() == sha256(sent).digest()
    assert again.headers.get(REPLAYED) == "true"


def test_the_application_can_parse_a_form(web: Client, name: str, orders: Count) -> None:
    upload = {"files": {"file": ("x.bin", b"12345")}, "data": {"field": "value"}}
    boundary = [("content-type", "multipart/form-data; boundary=fixed")]
    request = web.build_request("POST", "/", headers=dict(boundary), **upload)

    first, again = (web.order(f"/form?name={name}", name, content=request.read(), headers=boundary) for _ in range(2))

    assert first.json() == again.json() == {"field": "value", "size": 5}
    assert orders(name) == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_over_the_limit_is_refused_before_the_work(
    web: Client, name: str, orders: Count, chunked: bool, outcome: Callable[[str], str]
) -> None:
    body = b"x" * (LARGE + 1)

    refused = web.order(f"/echo?name={name}", name, content=iter([body]) if chunked else body)

    assert (refused.status_code, refused.json()["code"]) == (413, "request_too_large")
    assert (orders(name), outcome(name)) == (0, "absent")


def test_without_a_key_no_limit_holds(web: Client, name: str) -> None:
    assert web.order(f"/echo?name={name}", None, content=b"x" * (LARGE + 1)).status_code == 201


@pytest.mark.parametrize("size", [0, 1, LIMIT, LIMIT + 1, 3_000_000])
def test_an_answer_over_the_limit_is_passed_on_and_recorded_without_its_body(
    web: Client, name: str, orders: Count, size: int
) -> None:
    first, again = (web.order(f"/sized?name={name}&size={size}", name) for _ in range(2))

    assert (first.status_code, len(first.content)) == (201, size)
    assert (again.status_code, again.headers[REPLAYED]) == (201, "true")
    kept = size <= LIMIT
    assert len(again.content) == (size if kept else 0)
    assert again.headers.get("idempotency-body-omitted") == (None if kept else "true")
    assert orders(name) == 1


def test_a_stream_is_passed_on_while_it_is_made_but_for_its_last_part(
    web: Client, name: str, orders: Count, gate: Gate, outcome: Callable[[str], str]
) -> None:
    headers = {"x-client": "client:1", "idempotency-key": name}
    with web.stream("POST", f"/stream?name={name}", headers=headers) as answer:
        parts = answer.iter_raw()
        assert next(parts) == b"one,"
        gate.wait_for()
        assert outcome(name) == "in_progress"
        gate.open()
        assert b"".join(parts) == b"two,three"

    again = web.order(f"/stream?name={name}", name)
    assert (again.content, again.headers[REPLAYED]) == (b"one,two,three", "true")
    assert orders(name) == 1


def test_a_stream_that_breaks_off_leaves_the_outcome_unknown(
    web: Client, name: str, orders: Count, outcome: Callable[[str], str]
) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        web.order(f"/broken_stream?name={name}", name)
    wait_until(lambda: outcome(name) == "lapsed", "the request to end")
    assert orders(name) == 1


def test_events_are_passed_on_at_once_and_recorded_without_them(
    web: Client, name: str, orders: Count, gate: Gate, outcome: Callable[[str], str]
) -> None:
    headers = {"x-client": "client:1", "idempotency-key": name}
    with web.stream("POST", f"/events?name={name}", headers=headers) as answer:
        parts = answer.iter_raw()
        assert next(parts) == b"data: 1\n\n"
        gate.wait_for()
        assert outcome(name) == "in_progress"
        gate.open()
        assert b"".join(parts) == b"data: 2\n\n"

    again = web.order(f"/events?name={name}", name)
    assert (again.status_code, again.content) == (200, b"")
    assert again.headers["idempotency-body-omitted"] == "true"
    assert orders(name) == 1


def test_background_tasks_run_once_and_never_on_a_replay(web: Client, name: str, orders: Count) -> None:
    first = web.order(f"/background?name={name}", name)
    wait_until(lambda: orders(name) == 2, "the background task")
    again = web.order(f"/background?name={name}", name)
    another = web.order(f"/created?name={name}", None)

    assert first.content == again.content
    assert again.headers[REPLAYED] == "true"
    assert another.status_code == 201
    assert orders(name) == 3


def test_a_background_task_that_fails_changes_nothing(asgi: Client, name: str, outcome: Callable[[str], str]) -> None:
    path, close = f"/failing_background?name={name}", [("connection", "close")]
    assert asgi.order(path, name, headers=close).status_code == 201
    assert outcome(name) == "completed"
    assert asgi.order(path, name).headers[REPLAYED] == "true"


def test_compression_outside_fits_each_caller(asgi: Client, name: str, orders: Count) -> None:
    path = f"/compressed_outside/created?name={name}"
    first = asgi.order(path, name, headers=[("accept-encoding", "gzip")])
    again = asgi.order(path, name, headers=[("accept-encoding", "identity")])

    assert first.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in again.headers
    assert first.json() == again.json()
    assert orders(name) == 1


def test_compression_inside_is_replayed_as_it_was(asgi: Client, name: str, orders: Count) -> None:
    path = f"/compressed_inside/created?name={name}"
    first = asgi.order(path, name, headers=[("accept-encoding", "gzip")])
    headers = {"x-client": "client:1", "idempotency-key": name, "accept-encoding": "identity"}
    with asgi.stream("POST", path, headers=headers) as again:
        raw = b"".join(again.iter_raw())

    assert first.headers["content-encoding"] == again.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw) == first.content
    assert orders(name) == 1


def test_a_handler_that_waits_for_the_hang_up_is_told_of_it(
    asgi: Client, name: str, orders: Count, outcome: Callable[[str], str]
) -> None:
    with pytest.raises(httpx.ReadTimeout):
        asgi.order(f"/until_disconnected?name={name}", name, timeout=httpx.Timeout(60, read=0.5))
    wait_until(lambda: outcome(name) == "completed", "the handler to go on")
    again = asgi.order(f"/until_disconnected?name={name}", name)
    assert again.json()["message"] == "http.disconnect"
    assert orders(name) == 1


def test_a_caller_that_hangs_up_does_not_lose_the_answer(
    web: Client, name: str, orders: Count, gate: Gate, outcome: Callable[[str], str]
) -> None:
    with pytest.raises(httpx.ReadTimeout):
        web.order(f"/gated?name={name}", name, timeout=httpx.Timeout(60, read=1))
    gate.wait_for()
    gate.open()
    wait_until(lambda: outcome(name) == "completed", "the handler to end")

    assert web.order(f"/gated?name={name}", name).headers[REPLAYED] == "true"
    assert orders(name) == 1


@pytest.mark.parametrize("pool", [1, 4])
@pytest.mark.parametrize("kind", SERVERS)
def test_a_small_pool_serves_many_requests_at_once(
    serve: Serve, name: str, orders: Count, kind: str, pool: int
) -> None:
    options = {"threads": 40} if kind == "wsgi" else {}
    address = serve(*SERVERS[kind], APP_POOL=str(pool), **options)
    with client_on(address) as web, ThreadPoolExecutor(40) as threads:
        requests = [threads.submit(web.order, f"/slow?name={name}", f"{name}-{number}") for number in range(40)]
        answers = [request.result() for request in requests]

    assert {answer.status_code for answer in answers} == {201}
    assert orders(name) == 40


def test_an_answer_may_be_replaced_before_it_begins(wsgi: Client, name: str) -> None:
    first, again = (wsgi.order("/fails_before_it_starts", name) for _ in range(2))

    assert (first.status_code, first.content) == (again.status_code, again.content) == (418, b"replaced")


def test_what_is_written_the_old_way_comes_first(wsgi: Client, name: str) -> None:
    first, again = (wsgi.order("/writes", name) for _ in range(2))

    assert first.content == again.content == b"written,returned"
    assert again.headers[REPLAYED] == "true"
